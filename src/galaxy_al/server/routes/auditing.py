"""Audits: random examples, asked blind, that say how many are left and how good the model is."""

from fastapi import APIRouter

from galaxy_al.labelling.auditor import Plan
from galaxy_al.server.routes.context import Annotator, TheService
from galaxy_al.server.schemas import Audited, AuditPlan
from galaxy_al.server.status import audited

router = APIRouter(tags=["audit"])


@router.get("/api/audit")
def show_audit(service: TheService, annotator: Annotator) -> Audited:
    """What the last audit says so far."""
    return audited(service)


@router.post("/api/audit")
def plan_audit(service: TheService, annotator: Annotator, plan: AuditPlan) -> Audited:
    """Let the next questions be an audit's: begin one, or continue the one there is."""
    service.start_audit(Plan(plan.labels, plan.mixed), again=plan.again)
    return audited(service)
