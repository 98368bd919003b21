// Where symbolic names lead. The section is shared: in a facilitator the catalog claims it, in a tool server the agent tools do.
import { Schema } from "effect"
import { section, table } from "./Setting.ts"

export const networkSecuritySection = section("network_security", "Names and addresses that may be connected to.", {
  resolved_mcp_endpoints: table(Schema.String, {
    default: {},
    doc: "Connectable endpoint (an https URL) of each symbolic mcp:// identifier; one that is not here is never connected to."
  })
})
