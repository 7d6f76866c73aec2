// The OpenAPI description as a page.

import { get } from "./api.js";
import { element } from "./show.js";

const example = (schema, all) => {
  if (schema.$ref) return example(all[schema.$ref.split("/").pop()], all);
  if (schema.anyOf) return example(schema.anyOf[0], all);
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.properties) return Object.fromEntries(Object.entries(schema.properties).map(([name, part]) => [name, example(part, all)]));
  if (schema.prefixItems) return schema.prefixItems.map((part) => example(part, all));
  if (schema.type === "array") return [example(schema.items, all)];
  if (schema.type === "object") return schema.additionalProperties?.type ? { id: example(schema.additionalProperties, all) } : {};
  return { integer: 0, number: 0, boolean: false }[schema.type] ?? "text";
};

function route(method, path, about, all) {
  const parts = [
    element("h2", { className: "route", textContent: `${method.toUpperCase()} ${path}` }),
    element("p", { textContent: about.description ?? about.summary }),
  ];
  const parameters = (about.parameters ?? []).filter((parameter) => parameter.in === "query");
  if (parameters.length) {
    const names = parameters.map(({ name, required }) => (required ? name : `${name} (optional)`));
    parts.push(element("p", { className: "hint", textContent: `Query: ${names.join(", ")}` }));
  }
  const body = about.requestBody?.content["application/json"]?.schema;
  if (body) parts.push(element("pre", { tabIndex: 0, textContent: JSON.stringify(example(body, all), null, 2) }));
  const answer = about.responses["200"]?.content?.["application/json"]?.schema;
  if (answer) {
    parts.push(element("p", { className: "hint", textContent: "Answer:" }));
    parts.push(element("pre", { tabIndex: 0, textContent: JSON.stringify(example(answer, all), null, 2) }));
  }
  return element("article", {}, ...parts);
}

const description = await get("/api/openapi.json");
const all = description.components.schemas;
document.getElementById("routes").append(
  element("p", { textContent: description.info.description }),
  ...Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => route(method, path, about, all))),
);
