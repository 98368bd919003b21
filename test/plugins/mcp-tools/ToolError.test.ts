// The error contract that agents branch on.
import { expect, it } from "vitest"
import { encodeReference } from "../../../plugins/mcp-tools/Reference.ts"
import { toolError, toolErrorBody, type ToolErrorCode } from "../../../plugins/mcp-tools/ToolError.ts"

const mayBeTriedAgain: Readonly<Record<ToolErrorCode, boolean>> = {
  INVALID_ARGUMENT: false,
  NO_RESULTS: false,
  RESOURCE_STALE: true,
  RESOURCE_CHANGED: false,
  UNTRUSTED_REDIRECT: false,
  PAYMENT_REQUIRED: true,
  BUDGET_EXCEEDED: false,
  PAYMENT_REJECTED: false,
  SETTLEMENT_UNKNOWN: true,
  UPSTREAM_TIMEOUT: true,
  UPSTREAM_PROTOCOL_ERROR: false
}

it("each error code says whether a retry is allowed, in version 1 [S223–S234, S330]", () => {
  const codes = Object.keys(mayBeTriedAgain) as ReadonlyArray<ToolErrorCode>
  for (const code of codes) {
    expect(toolErrorBody(toolError(code, "why"))).toEqual({
      schemaVersion: 1,
      code,
      message: "why",
      retryable: mayBeTriedAgain[code]
    })
    expect(toolErrorBody(toolError(code, "why", { more: 1 }))["details"]).toEqual({ more: 1 })
  }
})

it("references and errors carry their version [S309]", () => {
  expect(encodeReference({ type: "http", url: "https://a.example/x", toolName: "" })).toMatch(/^v1\.[A-Za-z0-9_-]+$/)
  expect(toolErrorBody(toolError("NO_RESULTS", "none"))["schemaVersion"]).toBe(1)
})
