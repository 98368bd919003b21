// A remote signer's availability: one log line when it begins to fail and one when it signs again, and few probes.
import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { openRemoteAccount } from "../../../kernel/signer/remote/RemoteAccount.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { signerEnvironment, signerValues, startSigners } from "../../support/signers.ts"

const hash = new Uint8Array(32).fill(7)

/** An account of the HTTPS signer, and the lines that it logged. */
const opened = Effect.gen(function* () {
  const signers = yield* startSigners
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(
    ({ logLevel, message }) => void lines.push(`${logLevel} ${String([message].flat()[0])}`)
  )
  const values = signerValues("https", signers.url, signerEnvironment, signers.pair.publicKey())
  const account = yield* openRemoteAccount(values, yield* Crypto)
  return { account, lines, logging: Effect.provide(Logger.layer([logger])), signers }
}).pipe(Effect.provide(cryptoLayer))

it.effect("logs when a remote signer begins to fail and signs again", () =>
  Effect.gen(function* () {
    const { account, lines, logging, signers } = yield* opened
    yield* Effect.gen(function* () {
      yield* account.sign(hash)
      yield* account.sign(hash)
      expect(lines).toEqual([])
      signers.setFault("refuses")
      yield* Effect.flip(account.sign(hash))
      yield* Effect.flip(account.sign(hash))
      const failure = "the external signer answered with HTTP 503"
      expect(lines).toEqual([`Warn settling is busy: ${failure}`])
      expect(yield* account.problem).toBe(failure)
      signers.setFault(undefined)
      yield* account.sign(hash)
      yield* account.sign(hash)
      expect(lines.slice(1)).toEqual(["Info the external signer signs again"])
      expect(yield* account.problem).toBeUndefined()
    }).pipe(logging)
  }).pipe(Effect.scoped)
)

it.effect("probes a failing signer once a second, a silent one after five", () =>
  Effect.gen(function* () {
    const { account, signers } = yield* opened
    const asked = (probe: Effect.Effect<unknown>) =>
      Effect.suspend(() => {
        const before = signers.asked()
        return Effect.map(probe, () => signers.asked() - before)
      })
    // The address comes from the settings: nothing was requested yet, and the first payment probes.
    expect([signers.asked(), account.signedAt()]).toEqual([0, -Infinity])
    expect(yield* asked(account.assure)).toBe(1)
    yield* TestClock.adjust("4999 millis")
    expect(yield* asked(account.assure)).toBe(0)
    yield* TestClock.adjust("1 millis")
    expect(yield* asked(account.assure)).toBe(1)
    expect(yield* asked(account.problem)).toBe(0)
    signers.setFault("refuses")
    yield* Effect.flip(account.sign(hash))
    yield* TestClock.adjust("999 millis")
    expect(yield* asked(account.problem)).toBe(0)
    yield* TestClock.adjust("1 millis")
    expect(yield* asked(account.problem)).toBe(1)
    // The payment of a failing signer does not probe: `problem` decides about it.
    yield* TestClock.adjust("10 seconds")
    expect(yield* asked(account.assure)).toBe(0)
  }).pipe(Effect.scoped)
)
