// Requests to the server. An error carries the server's message; status 0 means no connection.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(method, path, options = {}) {
  let response;
  try {
    response = await fetch(path, { method, ...options });
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const isJson = response.headers.get("content-type")?.includes("json");
  const body = isJson ? await response.json() : null;
  if (!response.ok) throw new Refused(response.status, body?.error ?? response.statusText);
  return body;
}

export const get = (path, query = {}) => {
  const params = new URLSearchParams(query).toString();
  return request("GET", params ? `${path}?${params}` : path);
};

export const post = (path, body) =>
  request("POST", path, {
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body ?? {}),
  });

export const send = (path, file) => request("POST", path, { body: file });
