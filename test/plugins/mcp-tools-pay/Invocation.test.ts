// The key of an invocation: the call's own words, and those under which an earlier version may have kept its payment.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { invocationKeys } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"

it.effect("a call is known by its own words, and by the key of a version that had the resolved asset in it", () =>
  Effect.gen(function* () {
    const crypto = yield* Crypto
    const called = { agent: "key:agent", resource: "v1.ref", args: { a: 1 } }
    const former = (asset: string) =>
      Hex.encode(
        crypto.sha256(new TextEncoder().encode(canonicalJson([called.agent, called.resource, { a: 1 }, asset])))
      )
    const keys = (asked: string | undefined, assets: ReadonlyArray<string>) =>
      invocationKeys(crypto, called, asked, assets)
    expect(keys(undefined, ["CUSDC"]).key).toBe(keys(undefined, ["CXLM", "CUSDC"]).key)
    expect(keys(undefined, ["CXLM", "CUSDC"]).formerKeys).toEqual([former("CXLM"), former("CUSDC")])
    expect(keys("CUSDC", ["CXLM"])).toEqual({ key: former("CUSDC"), formerKeys: [] })
  }).pipe(Effect.provide(NodeCrypto.layer))
)
