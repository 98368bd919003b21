// The declarations of the official extension package and the results of its discovery client. One program: it prints
// one line with every declaration of its helpers, as a server's extension completes them at request time. Then it sends
// each line of standard input, `{ id, list }` or `{ id, search }`, with `withBazaar` to the facilitator in the first
// argument, and prints one line per answer.
import { HTTPFacilitatorClient } from "@x402/core/server"
import { bazaarResourceServerExtension, declareDiscoveryExtension, withBazaar } from "@x402/extensions"
import { createInterface } from "node:readline"

const { facilitator } = JSON.parse(process.argv[2] ?? "{}")

const completed = (declared, method, routePattern, path) => ({
  bazaar: bazaarResourceServerExtension.enrichDeclaration(declared.bazaar, {
    method,
    routePattern,
    adapter: { getPath: () => path }
  })
})

const rows = []
const http = (name, method, path, declared, routePattern = path, listed = path) =>
  rows.push({ name, type: "http", method, path, listed, extensions: completed(declared, method, routePattern, path) })
const mcp = (name, toolName, config) =>
  rows.push({
    name,
    type: "mcp",
    toolName,
    path: "/mcp",
    listed: "/mcp",
    extensions: declareDiscoveryExtension({
      toolName,
      inputSchema: { type: "object", properties: { a: { type: "number" } } },
      ...config
    })
  })

const input = { city: "Riga" }
const inputSchema = { properties: { city: { type: "string", description: "Name of the city" } }, required: ["city"] }
const output = {
  example: { celsius: 17 },
  schema: { properties: { celsius: { type: "number" } }, required: ["celsius"] }
}
for (const method of ["GET", "HEAD", "DELETE"])
  http(
    `${method} with a query`,
    method,
    `/query/${method.toLowerCase()}`,
    declareDiscoveryExtension({ input, inputSchema, output })
  )
http("GET that declares nothing but itself", "GET", "/bare", declareDiscoveryExtension({}))
http("GET without an example of its output", "GET", "/query/silent", declareDiscoveryExtension({ input, inputSchema }))
for (const method of ["POST", "PUT", "PATCH"]) {
  for (const bodyType of ["json", "form-data", "text"]) {
    http(
      `${method} with a ${bodyType} body`,
      method,
      `/body/${method.toLowerCase()}/${bodyType}`,
      declareDiscoveryExtension({ input, inputSchema: { type: "object", ...inputSchema }, bodyType, output })
    )
  }
}
const pathParamsSchema = { properties: { id: { type: "string" } }, required: ["id"] }
http(
  "a :param route",
  "GET",
  "/users/7",
  declareDiscoveryExtension({ pathParamsSchema, output }),
  "/users/:id",
  "/users/:id"
)
http(
  "a [param] route",
  "GET",
  "/teams/7",
  declareDiscoveryExtension({ pathParamsSchema, output }),
  "/teams/[id]",
  "/teams/:id"
)
http(
  "a route of two params, schema left out",
  "GET",
  "/shops/3/items/9",
  declareDiscoveryExtension({ output }),
  "/shops/:shop/items/:item",
  "/shops/:shop/items/:item"
)
http("a * segment", "GET", "/files/a", declareDiscoveryExtension({ output }), "/files/*", "/files/:var1")
http(
  "a body at a :param route",
  "POST",
  "/users/7/notes",
  declareDiscoveryExtension({ input, inputSchema: { type: "object" }, bodyType: "json", pathParamsSchema, output }),
  "/users/:id/notes",
  "/users/:id/notes"
)
mcp("a tool", "add", {})
mcp("a tool with everything", "multiply", {
  description: "Multiplies",
  transport: "streamable-http",
  example: { a: 1 },
  output: { example: { product: 1 } }
})
mcp("a tool over SSE", "divide", { transport: "sse" })

console.log(JSON.stringify({ rows }))

const {
  extensions: { bazaar }
} = withBazaar(new HTTPFacilitatorClient({ url: facilitator }))
for await (const line of createInterface({ input: process.stdin })) {
  const { id, list, search } = JSON.parse(line)
  const answer = await (list === undefined ? bazaar.search(search) : bazaar.listResources(list)).then(
    (value) => ({ value }),
    (error) => ({ error: String(error.message) })
  )
  console.log(JSON.stringify({ id, ...answer }))
}
process.exit(0)
