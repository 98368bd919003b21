import { expect, it } from "@effect/vitest"
import { mirroredHeaders, offersStateless, withEnvelope } from "../../../plugins/catalog/ownership/StatelessRevision.ts"

const clientInfo = { name: "client", version: "1.2.3" }

const schemaWith = (properties: object) => ({ type: "object", properties })
const call = (args: object, schema: object, name = "add") =>
  mirroredHeaders("tools/call", { name, arguments: args }, schema)

it("a call's headers mirror its tool and the marked arguments", () => {
  expect(mirroredHeaders("tools/list", {}, undefined)).toEqual({ "mcp-method": "tools/list" })
  const schema = schemaWith({
    city: { type: "string", "x-mcp-header": "City" },
    free: { type: "string" },
    place: schemaWith({ days: { type: "integer", "x-mcp-header": "Days" } }),
    isShort: { type: "boolean", "x-mcp-header": "Short" },
    other: { type: "string", "x-mcp-header": "Other" }
  })
  expect(call({ city: "Rīga", free: "x", place: { days: 3 }, isShort: false, other: null }, schema)).toEqual({
    "mcp-method": "tools/call",
    "mcp-name": "add",
    "mcp-param-city": "=?base64?UsSrZ2E=?=",
    "mcp-param-days": "3",
    "mcp-param-short": "false"
  })
})

it("a header value is encoded unless plain, preventing header injection", () => {
  const schema = schemaWith({ city: { type: "string", "x-mcp-header": "City" } })
  for (const city of ["a\r\nx-payment: 1", " a", "=?base64?YQ==?="])
    expect(call({ city }, schema)?.["mcp-param-city"]).toBe(`=?base64?${Buffer.from(city).toString("base64")}?=`)
  expect(call({}, schema, "añadir")?.["mcp-name"]).toMatch(/^=\?base64\?/)
})

it("a forbidden schema mark refuses the call", () => {
  const marked = (mark: unknown, type = "string") => ({ type, "x-mcp-header": mark })
  for (const properties of [
    { city: marked("Ci ty") },
    { city: marked("") },
    { city: marked(1) },
    { city: marked("City", "number") },
    { city: marked("City", "object") },
    { city: marked("City"), other: marked("CITY") },
    Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`p${at}`, marked(`p${at}`)]))
  ])
    expect(call({}, schemaWith(properties))).toBeUndefined()
  expect(call({}, { ...schemaWith({}), "x-mcp-header": "Root", type: "string" })).toBeUndefined()
})

it("each request carries its revision and the payment extension in its metadata", () => {
  expect(withEnvelope({ name: "add", _meta: { "x402/payment": 1 } }, clientInfo)).toEqual({
    name: "add",
    _meta: {
      "x402/payment": 1,
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": clientInfo,
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "org.x402/payment": {} } }
    }
  })
})

it("the revision is used if the server lists it as supported", () => {
  expect(offersStateless({ supportedVersions: ["2025-11-25", "2026-07-28"] })).toBe(true)
  for (const supportedVersions of [["2025-11-25"], "2026-07-28", undefined])
    expect(offersStateless({ supportedVersions })).toBe(false)
})
