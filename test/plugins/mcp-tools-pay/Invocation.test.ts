// The key of an invocation: the call's own words.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { invocationKey } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"

it.effect("a call is known by its own words", () =>
  Effect.gen(function* () {
    const crypto = yield* Crypto
    const called = { agent: "key:agent", resource: "v1.ref", args: { a: 1 } }
    const keyOf = (asset: string | null) =>
      Hex.encode(
        crypto.sha256(new TextEncoder().encode(canonicalJson([called.agent, called.resource, { a: 1 }, asset])))
      )
    expect(invocationKey(crypto, called, undefined)).toBe(keyOf(null))
    expect(invocationKey(crypto, called, "CUSDC")).toBe(keyOf("CUSDC"))
  }).pipe(Effect.provide(NodeCrypto.layer))
)
