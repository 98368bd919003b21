// Looking up what spent an authorization: once for a nonce, whatever is shown of it, and in turns over callers.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option } from "effect"
import { describe } from "vitest"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { type AdoptionRequest, makeAdopter } from "../../../kernel/settlement/adopt.ts"
import { Authorizations } from "../../../kernel/settlement/Authorizations.ts"
import { Settlements } from "../../../kernel/settlement/Settlements.ts"
import { Signer } from "../../../kernel/signer/Signer.ts"
import { executed } from "./lives.ts"
import { spendingEnvelope } from "./spendingEnvelope.ts"

/** A key as the schemes make it: payer, nonce, expiry. */
const request = (nonce: number, expiry: number, caller = "key:a"): AdoptionRequest =>
  ({
    id: "id",
    network: "ledger:testnet",
    scheme: "exact",
    authorizationKey: `payer:${nonce}:${expiry}`,
    fingerprint: "f",
    principal: { owner: caller, source: caller, keyed: true },
    identifier: Option.none(),
    payer: "payer",
    payTo: "seller",
    asset: "asset",
    amount: 10n,
    resourceUrl: Option.none()
  }) as AdoptionRequest

interface Ledger {
  /** Waited for by each look through a ledger. */
  readonly gate?: Effect.Effect<void>
  /** The transaction that used the nonce is shown. */
  readonly isShown?: boolean
  /** The authorization that it carries. */
  readonly carried?: string
}

const adopter = Effect.fnUntraced(function* ({ carried = "", gate = Effect.void, isShown = true }: Ledger) {
  let scans = 0
  const { channel, envelope } = spendingEnvelope
  const ports = Layer.mergeAll(
    Layer.succeed(LedgerRpc, {
      nonceSpent: () => Effect.succeed({ latestLedger: 50, spent: true, inLedger: Option.some(40) }),
      scan: () =>
        Effect.gen(function* () {
          scans += 1
          yield* gate
          return {
            scannedTo: 40,
            oldestLedger: 1,
            found: isShown ? [{ executed: executed({ ledger: 40 }), envelope }] : []
          }
        })
    } as never),
    Layer.succeed(Settlements, { adopt: () => Effect.succeed("Adopted") } as never),
    Layer.succeed(Signer, { channels: [channel], sponsor: "sponsor", formerChannels: [] } as never),
    Layer.succeed(Authorizations, {
      nonceOf: ({ authorizationKey }: AdoptionRequest) => ({
        address: "payer",
        nonce: BigInt(authorizationKey.split(":")[1]!)
      }),
      useIn: ({ authorizationKey }: AdoptionRequest) => (authorizationKey === carried ? "same" : "other"),
      moved: () => 10n
    } as never)
  )
  const adopt = yield* Effect.provide(makeAdopter, ports)
  return { adopt, scans: () => scans }
})

describe("what spent an authorization", () => {
  it.effect("is looked up once for its nonce, whatever expiries are shown, and found for the one it carries", () =>
    Effect.gen(function* () {
      const { adopt, scans } = yield* adopter({ carried: "payer:1:1010" })
      for (let expiry = 1_000; expiry < 1_010; expiry++) expect(yield* adopt(request(1, expiry))).toBeUndefined()
      expect(yield* adopt(request(1, 1_010))).toBe("Adopted")
      expect(scans()).toBe(1)
      yield* adopt(request(2, 1_010))
      expect(scans()).toBe(2)
    })
  )

  it.effect("is not said to be somebody else's while its transaction is not shown", () =>
    Effect.gen(function* () {
      const { adopt } = yield* adopter({ isShown: false })
      expect((yield* Effect.flip(adopt(request(1, 1_010))))._tag).toBe("LedgerUnavailable")
    })
  )

  it.effect("is looked up for one caller though another asks for many", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { adopt, scans } = yield* adopter({ gate: Deferred.await(gate) })
      const crowd = yield* Effect.forEach(
        Array.from({ length: 12 }, (_, nonce) => nonce),
        (nonce) => Effect.forkChild(Effect.exit(adopt(request(nonce, 1_010, "key:crowd"))))
      )
      yield* Effect.yieldNow
      const alone = yield* Effect.forkChild(adopt(request(99, 1_010, "key:alone")))
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(alone)).toBeUndefined()
      const exits = yield* Effect.forEach(crowd, Fiber.join)
      expect(exits.filter(({ _tag }) => _tag === "Failure")).toHaveLength(8)
      expect(scans()).toBe(5)
    })
  )
})
