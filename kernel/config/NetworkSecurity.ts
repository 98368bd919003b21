// The handling of symbolic names, and the caps of an agent's tools. The section is shared: in a facilitator the catalog
// claims it, in a tool server the agent tools claim it, and only they use the caps.
import { Schema } from "effect"
import { integer, section, table } from "./Setting.ts"

export const networkSecuritySection = section("network_security", "Names and addresses that may be connected to.", {
  resolved_mcp_endpoints: table(Schema.String, {
    default: {},
    doc: "Connectable endpoint (an https URL) of each symbolic mcp:// identifier; others are never " + "connected to."
  }),
  max_response_bytes: integer(
    { default: 8_388_608, min: 65_536, max: 67_108_864, unit: "bytes" },
    "Agent tools: maximum size of an answer from any server that is called."
  ),
  timeout_ms: integer(
    { default: 15_000, min: 100, max: 120_000, unit: "ms" },
    "Agent tools: timeout of a request, redirects included."
  ),
  paid_call_timeout_ms: integer(
    { default: 45_000, min: 1_000, max: 300_000, unit: "ms" },
    "Agent tools: timeout of a call that carries a payment, including verify and settle; reading an HTTP " +
      "body may take nine tenths of it."
  ),
  confirm_timeout_ms: integer(
    { default: 12_000, min: 100, max: 120_000, unit: "ms" },
    "Agent tools: how long the ledger is polled for a settlement that a seller reports."
  ),
  max_redirects: integer(
    { default: 3, min: 0, max: 10 },
    "Agent tools: maximum number of redirects, on the same origin only."
  ),
  max_json_depth: integer({ default: 32, min: 4, max: 128 }, "Agent tools: maximum nesting depth of a JSON answer."),
  max_concurrent_connections: integer(
    { default: 10, min: 6, max: 1_000 },
    "Agent tools: maximum number of concurrent connections. With fewer than 6, a seller that hangs would hold up " +
      "its agent's other sellers."
  )
})
