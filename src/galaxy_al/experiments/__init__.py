"""Simulated runs, their results and pictures."""
