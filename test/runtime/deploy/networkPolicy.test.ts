// The network policy allows each outgoing connection that a setting opens, at the usual port of the setting's service,
// and blocks cloud metadata addresses. Read by a parser of policies, setting by setting.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { inRange } from "../../../kernel/config/addressRange.ts"

interface Rule {
  readonly to?: ReadonlyArray<{ readonly ipBlock: { readonly cidr: string; readonly except?: ReadonlyArray<string> } }>
  readonly ports: ReadonlyArray<{ readonly port: number; readonly protocol: string }>
}

const path = new URL("../../../runtime/deploy/kubernetes/networkpolicy.yaml", import.meta.url)
const { spec } = parse(readFileSync(path, "utf8")) as { readonly spec: { readonly egress: ReadonlyArray<Rule> } }

/** True if a connection is allowed: one rule has its port and its address. */
const letsOut = (address: string, port: number, protocol = "TCP"): boolean =>
  spec.egress.some(
    ({ ports, to }) =>
      ports.some((one) => one.port === port && one.protocol === protocol) &&
      (to === undefined ||
        to.some(
          ({ ipBlock: { cidr, except = [] } }) =>
            inRange(address, cidr) && !except.some((range) => inRange(address, range))
        ))
  )

describe("the network policy", () => {
  it.each([
    ["names", "10.0.0.10", 53],
    ["DATABASE_URL", "10.0.0.20", 5432],
    ["DATABASE_URL through a pooler", "10.0.0.20", 6432],
    ["networks.<id>.rpc_urls", "203.0.113.5", 443],
    ["networks.<id>.sponsor_signer of vault-transit", "10.0.0.30", 8200],
    ["networks.<id>.sponsor_signer of aws-kms, gcp-kms and https", "203.0.113.6", 443],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "10.0.0.40", 4318],
    ["webhooks.receivers", "2001:db8::7", 443],
    ["catalog: sellers' origins", "203.0.113.8", 443],
    ["search: an embedding service", "203.0.113.9", 443]
  ])("lets out %s", (_, address, port) => {
    expect(letsOut(address, port)).toBe(true)
  })

  it("lets out nothing else, and nothing to a cloud's metadata", () => {
    expect(letsOut("10.0.0.10", 53, "UDP")).toBe(true)
    for (const port of [22, 25, 80, 3306, 8000]) expect(letsOut("203.0.113.5", port)).toBe(false)
    for (const address of ["169.254.169.254", "fe80::1"]) expect(letsOut(address, 443)).toBe(false)
  })
})
