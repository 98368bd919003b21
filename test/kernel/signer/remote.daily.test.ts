// Keys on another machine: the protocols of Vault, AWS KMS, Google Cloud KMS and our own signer, against servers that
// authenticate callers as the real ones do; a whole facilitator with such a key as its sponsor; and the answers to
// callers while the signer does not sign.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Exit, Schedule } from "effect"
import { describe } from "vitest"
import { remoteSignerIssue } from "../../../kernel/config/RemoteSigner.ts"
import { openRemoteAccount, openRemoteKey } from "../../../kernel/signer/remote/RemoteAccount.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import {
  secrets,
  settingsOf,
  signerDefaults,
  signerEnvironment,
  type SignerKind,
  signerValues,
  startSigners
} from "../../support/signers.ts"

const kinds: ReadonlyArray<SignerKind> = ["https", "vault-transit", "aws-kms", "gcp-kms"]

const open = (kind: SignerKind, url: string, environment: Record<string, string | undefined>, address?: string) =>
  Effect.flatMap(Crypto, (crypto) => openRemoteAccount(signerValues(kind, url, environment, address), crypto)).pipe(
    Effect.provide(cryptoLayer)
  )

const hash = Uint8Array.from({ length: 32 }, (_, at) => at * 7)

/** The environment variable with the credentials, by kind, with another caller's content. */
const stranger: Readonly<Record<SignerKind, Record<string, string>>> = {
  https: { SIGNER_TOKEN: "another-token" },
  "vault-transit": { SIGNER_TOKEN: "another-token" },
  "aws-kms": { AWS_SECRET_ACCESS_KEY: "anothers" },
  "gcp-kms": { GOOGLE_CREDENTIALS: "{}" }
}

describe.each(kinds)("an account whose key is held by %s", (kind) => {
  it.live("a remote key signs messages as well, and another's signature is none", () =>
    Effect.gen(function* () {
      const signers = yield* startSigners
      const { publicKey, sign } = yield* openRemoteKey(
        signerValues(kind, signers.url, signerEnvironment),
        yield* Crypto
      )
      expect(Buffer.from(publicKey)).toEqual(Buffer.from(signers.pair.rawPublicKey()))
      for (const length of [31, 33, 700]) {
        const message = Uint8Array.from({ length }, (_, at) => at)
        expect(signers.pair.verify(Buffer.from(message), Buffer.from(yield* sign(message)))).toBe(true)
      }
      signers.setFault("wrong")
      expect((yield* Effect.flip(sign(new Uint8Array(700)))).message).toContain(
        "is not a signature of this by that key"
      )
    }).pipe(Effect.scoped, Effect.provide(cryptoLayer))
  )

  it.live("a remote key signs, and an invalid signature is rejected", () =>
    Effect.gen(function* () {
      const signers = yield* startSigners
      const account = yield* open(kind, signers.url, signerEnvironment)
      expect(account.address).toBe(signers.pair.publicKey())
      expect(signers.pair.verify(Buffer.from(hash), Buffer.from(yield* account.sign(hash)))).toBe(true)
      expect(yield* account.problem).toBeUndefined()
      const errors = ["wrong", "refuses", "redirects"] as const
      for (const error of kind === "https" ? [...errors, "silent" as const] : errors) {
        signers.setFault(error)
        const refused = yield* Effect.flip(account.sign(hash))
        expect(refused._tag).toBe("LedgerUnavailable")
        expect(refused.message).not.toContain(signers.url)
        for (const secret of Object.values(secrets)) expect(refused.message).not.toContain(secret)
      }
      expect(yield* account.problem).toMatch(/signer/)
      signers.setFault(undefined)
      yield* Effect.repeat(account.problem, {
        until: (why) => why === undefined,
        schedule: Schedule.spaced("50 millis")
      })
    }).pipe(Effect.scoped)
  )

  it.live("a remote signer requires valid credentials and the configured address", () =>
    Effect.gen(function* () {
      const signers = yield* startSigners
      const other = Keypair.random().publicKey()
      expect(Exit.isFailure(yield* Effect.exit(open(kind, signers.url, stranger[kind])))).toBe(true)
      // The address is trusted, the signature is not.
      const promised = yield* open(kind, signers.url, signerEnvironment, other)
      expect((yield* Effect.exit(promised.sign(hash)))._tag).toBe("Failure")
    }).pipe(Effect.scoped)
  )

  it.live(
    "a remote key sponsors settlements; while it fails, /settle is busy without leasing",
    () =>
      Effect.gen(function* () {
        const signers = yield* startSigners
        const settings = JSON.stringify(settingsOf(kind, signers.url))
        const channels = [1, 2].map(() => Keypair.random().secret())
        const facilitator = yield* startFacilitator({
          channels: 2,
          environment: { ...signerEnvironment, CHANNELS: channels.join() },
          set: [
            "plugins=[ledger-local,x402-exact]",
            `networks.ledger:testnet.sponsor_signer=${settings}`,
            "networks.ledger:testnet.channel_secrets_env=CHANNELS"
          ]
        })
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const payment = Effect.gen(function* () {
          return (yield* facilitator.payment({ payer: yield* facilitator.account(), payTo, amount: 10n })).body
        })
        expect((yield* facilitator.ask("/supported")).json.kinds[0].signer).toBe(signers.pair.publicKey())
        expect((yield* facilitator.settle(yield* payment)).json).toMatchObject({ success: true })

        const held = yield* payment
        const rows = facilitator.sql<{ count: number }>`select count(*)::int as count from kernel_settlements`
        const leased = facilitator.sql`select 1 from kernel_channels where leased_until > clock_timestamp()`
        const fences = fencesOf(facilitator)
        signers.setFault(kind === "https" ? "wrong" : "refuses")
        // The first one detects it, and releases its channel; nothing is recorded.
        const first = yield* facilitator.settle(held)
        expect([first.status, first.json.errorReason]).toEqual([503, "settle_ledger_temporarily_unavailable"])
        expect(yield* rows).toEqual([{ count: 1 }])
        expect(yield* leased).toEqual([])
        // An earlier signature may still arrive and show the signer as healthy: then one more request detects it.
        yield* eventually(
          Effect.gen(function* () {
            const before = yield* fences
            const next = yield* facilitator.settle(held)
            expect([next.status, next.json.errorReason]).toEqual([503, "settle_ledger_temporarily_unavailable"])
            return (yield* fences) === before
          })
        )
        expect((yield* facilitator.verify(held)).json.invalidReason).toMatch(/unavailable$/)
        expect(yield* rows).toEqual([{ count: 1 }])
        signers.setFault(undefined)
        const settled = yield* Effect.repeat(facilitator.settle(held), {
          until: ({ status }) => status !== 503,
          schedule: Schedule.spaced("200 millis")
        }).pipe(Effect.timeout("100 seconds"))
        expect(settled.json).toMatchObject({ success: true })
      }).pipe(Effect.scoped),
    240_000
  )
})

const fencesOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.sql<{ fence: bigint }>`select fence from kernel_channels order by address`, (rows) =>
    rows.map(({ fence }) => fence).join()
  )

/** Three concurrent payments: the answer of each, and whether a channel was leased for any. */
const settleThree = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const fences = fencesOf(facilitator)
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const bodies = yield* Effect.forEach([1, 2, 3], () =>
    Effect.gen(function* () {
      return (yield* facilitator.payment({ payer: yield* facilitator.account(), payTo, amount: 10n })).body
    })
  )
  const before = yield* fences
  const answers = yield* Effect.forEach(bodies, (body) => facilitator.settle(body), { concurrency: 3 })
  const reported = answers.map(({ json, status }) => (json.success === true ? "settled" : status))
  return { reported, leased: (yield* fences) !== before }
})

it.live(
  "first payments with a silent signer are busy and lease no channel",
  () =>
    Effect.gen(function* () {
      const signers = yield* startSigners
      const channels = [1, 2].map(() => Keypair.random())
      const world = yield* startFacilitator({ channels: 1 })
      // There already, so that nothing has to be signed before the payments come.
      const fund = (address: string) =>
        Effect.promise(() => fetch(`${world.ledgerUrl}/friendbot?addr=${address}`).then((answer) => answer.text()))
      yield* Effect.forEach([signers.pair, ...channels], (pair) => fund(pair.publicKey()))
      signers.setFault("silent")
      const signer = JSON.stringify({ ...settingsOf("https", signers.url), address: signers.pair.publicKey() })
      const facilitator = yield* startFacilitator({
        ledgerUrl: world.ledgerUrl,
        channels: 2,
        environment: { ...signerEnvironment, CHANNELS: channels.map((pair) => pair.secret()).join() },
        set: [
          "limits.channel_wait_ms=20000",
          `networks.ledger:testnet.sponsor_signer=${signer}`,
          "networks.ledger:testnet.channel_secrets_env=CHANNELS"
        ]
      })
      expect(signers.asked()).toBe(0)
      const { leased, reported } = yield* settleThree(facilitator)
      expect(reported).toEqual([503, 503, 503])
      expect(leased).toBe(false)
      expect(yield* facilitator.sql`select 1 from kernel_settlements`).toEqual([])
      signers.setFault(undefined)
      yield* Effect.repeat(settleThree(facilitator), {
        until: ({ reported }) => reported.every((word) => word === "settled"),
        schedule: Schedule.spaced("200 millis")
      }).pipe(Effect.timeout("100 seconds"))
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "channels with remote keys are opened and leased; none while one fails",
  () =>
    Effect.gen(function* () {
      const machines = [yield* startSigners, yield* startSigners, yield* startSigners]
      const [sponsor, ...channels] = machines.map(({ url }) => settingsOf("vault-transit", url))
      const facilitator = yield* startFacilitator({
        channels: 2,
        environment: signerEnvironment,
        set: [
          "plugins=[ledger-local,x402-exact]",
          "limits.channel_wait_ms=20000",
          `networks.ledger:testnet.sponsor_signer=${JSON.stringify(sponsor)}`,
          `networks.ledger:testnet.channel_signers=${JSON.stringify(channels)}`
        ]
      })
      const held = machines.map(({ pair }) => pair.publicKey())
      expect((yield* facilitator.ask("/supported")).json.signers["ledger:*"]).toEqual(held)
      expect((yield* settleThree(facilitator)).reported).toEqual(["settled", "settled", "settled"])
      const used = facilitator.sql<{ channel: string }>`select distinct channel from kernel_settlements order by 1`
      expect((yield* used).map(({ channel }) => channel)).toEqual(held.slice(1).sort())

      machines[2]!.setFault("wrong")
      // The payment that gets this channel detects it; from then on nothing is leased.
      yield* Effect.repeat(settleThree(facilitator), {
        until: ({ leased, reported }) => !leased && reported.every((word) => word === 503),
        schedule: Schedule.spaced("100 millis")
      }).pipe(Effect.timeout("100 seconds"))
      const stuck = facilitator.sql`select 1 from kernel_channels where leased_until > clock_timestamp()
        or (settlement is not null and settlement not in (select id from kernel_settlements where state <> 'settled'))`
      expect(yield* stuck).toEqual([])
      machines[2]!.setFault(undefined)
      yield* Effect.repeat(settleThree(facilitator), {
        until: ({ reported }) => reported.every((word) => word === "settled"),
        schedule: Schedule.spaced("200 millis")
      }).pipe(Effect.timeout("100 seconds"))
    }).pipe(Effect.scoped),
  240_000
)

it("refuses external signer settings without an endpoint or without TLS", () => {
  const error = (settings: object) => remoteSignerIssue({ ...signerDefaults, kind: "https", ...settings } as never)
  expect(error({})).toMatch(/url/)
  expect(error({ url: "http://signer.example" })).toMatch(/https/)
  expect(error({ url: "https://signer.example" })).toBeUndefined()
  expect(error({ kind: "vault-transit", url: "https://vault.example" })).toMatch(/key/)
  expect(error({ kind: "aws-kms", key: "k" })).toMatch(/region/)
  expect(error({ kind: "gcp-kms", key: "projects/p/../../x" })).toMatch(/cryptoKeyVersions/)
})
