// The keys of receipts: rotated while old receipts still verify, stolen but bounded by the log, held by a remote signer
// that may not answer, and never an account's key.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, FileSystem } from "effect"
import { createHash } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe } from "vitest"
import { checkKept } from "../../../examples/receipts/check.mjs"
import { openCheckpoint, openReceipt, verify } from "../../../examples/receipts/verify.mjs"
import { databaseKinds, lasting } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { fetchAll } from "./checkReceipt.ts"
import { settingsOf, signerEnvironment, startSigners } from "../../support/signers.ts"

const signing = ["plugins=[x402-exact,receipts]", "receipts.host=pay.example"]
const startLedger = startFacilitator({ closeMillis: 500, channels: 1, set: ["plugins=[ledger-local,x402-exact]"] })
const makeFolder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

const kidOf = (pair: Keypair): string =>
  `did:web:pay.example#receipt-${createHash("sha256").update(pair.rawPublicKey()).digest("hex").slice(0, 16)}`

const didOf = (facilitator: Facilitator) => Effect.map(facilitator.ask("/.well-known/did.json"), ({ json }) => json)

/** A payment's settle answer. */
const pay = Effect.fnUntraced(function* (facilitator: Facilitator, ledger: Facilitator, from?: Keypair) {
  const payTo = (yield* ledger.account()).publicKey()
  const { body } = yield* facilitator.payment({ payer: from ?? (yield* ledger.account()), payTo, amount: 1_000n })
  const { json, text } = yield* facilitator.settle(body)
  expect(json.success, text).toBe(true)
  return json
})

const proven = (facilitator: Facilitator, { transaction }: { readonly transaction: string }) =>
  Effect.map(
    eventually(
      facilitator.ask(`/receipts/${transaction}?proof=1`),
      ({ json }) => json?.outcomes?.[0]?.proof?.size !== undefined
    ),
    ({ json }) => json
  )

const receiptIn = ({ extensions }: any): string => extensions["tollkeeper-receipt"].info.receipt

/** A forged receipt by a thief of a key, for a payment that never happened. */
const forge = (pair: Keypair, claims: object): string => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const header = part({ alg: "EdDSA", kid: kidOf(pair), typ: "tollkeeper-receipt+jws" })
  const sorted = Object.fromEntries(Object.entries(claims).sort(([a], [b]) => (a < b ? -1 : 1)))
  const signed = `${header}.${part(sorted)}`
  return `${signed}.${Buffer.from(pair.sign(Buffer.from(signed))).toString("base64url")}`
}

describe.each(databaseKinds)("the keys of receipts on %s", (kind) => {
  it.live(
    "a rotation: old receipts verify, the new key signs, and a stolen one proves nothing that is not in the log",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const [former, current] = [Keypair.random(), Keypair.random()]
        const shared = {
          ledgerUrl: ledger.ledgerUrl,
          database: yield* lasting(kind),
          stateFolder: yield* makeFolder,
          set: signing
        }
        const sponsor = Keypair.random().secret()
        const start = (secrets: string) =>
          startFacilitator({ ...shared, environment: { SPONSOR_SECRET: sponsor, RECEIPTS_SECRET: secrets } })
        const before = yield* start(former.secret())
        const payer = yield* ledger.account()
        const old = yield* pay(before, ledger, payer)
        const kept = yield* proven(before, old)
        yield* before.stop

        const after = yield* start(`${current.secret()},${former.secret()}`)
        // Announced, but not in force yet: every replica has to read it first.
        const between = yield* pay(after, ledger)
        const announced = yield* didOf(after)
        expect((yield* Effect.promise(() => openReceipt(receiptIn(between), announced))).key.id).toBe(kidOf(former))
        const methodOf = (did: any, pair: Keypair) => did.verificationMethod.find(({ id }: any) => id === kidOf(pair))
        expect(methodOf(announced, former)).toMatchObject({ validFrom: 0, validUntil: expect.any(Number) })
        const { validFrom } = methodOf(announced, current)
        expect(validFrom).toBe(methodOf(announced, former).validUntil)
        // The key takes effect at a whole second, as in did.json: an outcome just before it still belongs to the former
        // key.
        const [whole] = yield* after.sql`select 1 from receipts_keys where kid = ${kidOf(current).split("#")[1]!}
          and valid_from = to_timestamp(${validFrom}::int8)`
        expect(whole).toBeDefined()
        const isDue = Effect.map(after.sql<{ now: Date }>`select clock_timestamp() as now`, ([row]) => row!.now)
        yield* eventually(isDue, (now) => now.getTime() > (validFrom + 1) * 1_000)

        const fresh = yield* pay(after, ledger)
        const did = yield* didOf(after)
        expect((yield* Effect.promise(() => openReceipt(receiptIn(fresh), did))).key.id).toBe(kidOf(current))
        for (const paid of [old, between, fresh]) {
          const answer = yield* proven(after, paid)
          expect(answer.receipt).toBe(receiptIn(paid))
          expect((yield* Effect.promise(() => verify(answer, did))).transaction).toBe(paid.transaction)
        }
        // The stored proof is under the retired key; its payer fetches a new one by a signed challenge.
        yield* Effect.promise(() => expect(verify(kept, did)).rejects.toThrow("a retired key of the log"))
        const renewed = yield* Effect.promise(async () => {
          const [file, seed] = [join(shared.stateFolder, "kept.jsonl"), join(shared.stateFolder, "payer.seed")]
          await Promise.all([writeFile(file, `${JSON.stringify(kept)}\n`), writeFile(seed, `${payer.secret()}\n`)])
          return fetchAll({ places: [file], url: after.url, secretFile: seed })
        })
        expect((yield* Effect.promise(() => verify(renewed[0], did))).transaction).toBe(old.transaction)
        // The log has the start and the end of each key's use.
        const entries = yield* after.sql<{ text: string }>`select convert_from(substr(entry, 2), 'UTF8') as text
          from receipts_leaves where get_byte(entry, 0) = 2 order by index`
        const ofReceipts = entries.map(({ text }) => JSON.parse(text)).filter(({ use }) => use === "receipt")
        expect(ofReceipts.map(({ event, kid }) => [event, kid])).toEqual([
          ["announced", kidOf(former)],
          ["announced", kidOf(current)],
          ["retired", kidOf(former)]
        ])

        // With the former key: a payment that never happened, dated in that key's time.
        const { claims } = yield* Effect.promise(() => openReceipt(receiptIn(old), did))
        const forged = forge(former, { ...claims, transaction: "ab".repeat(32), amount: "999999" })
        yield* Effect.promise(async () => {
          expect((await openReceipt(forged, did)).claims.amount).toBe("999999")
          await expect(checkKept({ receipt: forged, outcomes: [] }, did)).rejects.toThrow("only a proof shows when")
        })
        const answer = yield* proven(after, old)
        const refused = yield* Effect.promise(() => verify({ ...answer, receipt: forged }, did).catch(String))
        expect(refused).toContain("no proof")
        // With the key in force, before the theft is noticed: the log lacks a leaf for it too.
        const present = forge(current, { ...claims, transaction: "cd".repeat(32) })
        const also = yield* Effect.promise(() => verify({ ...answer, receipt: present }, did).catch(String))
        expect(also).toContain("no proof")
        expect((yield* after.ask(`/receipts/${"cd".repeat(32)}?proof=1`)).status).toBe(404)

        // A log without new leaves: a checkpoint under the key in force replaces the former key's.
        yield* after.sql`update receipts_checkpoints set note = 'former', signed_at = to_timestamp(0)`
        yield* after.stop
        const later = yield* start(`${current.secret()},${former.secret()}`)
        const { text } = yield* eventually(later.ask("/log/checkpoint"), (answer) => answer.text.startsWith("pay."))
        const inForce = did.verificationMethod.filter(({ validUntil }: any) => validUntil === undefined)
        const opened = openCheckpoint(text, { ...did, verificationMethod: inForce })
        expect((yield* Effect.promise(() => opened)).origin).toBe("pay.example/log")
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "a rotation is rolled back: the former key is reinstated, and logged",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const [former, next] = [Keypair.random(), Keypair.random()]
        const shared = {
          ledgerUrl: ledger.ledgerUrl,
          database: yield* lasting(kind),
          stateFolder: yield* makeFolder,
          set: signing
        }
        const secrets = { SPONSOR_SECRET: Keypair.random().secret(), RECEIPTS_LOG_SECRET: Keypair.random().secret() }
        const start = (seeds: string) =>
          startFacilitator({ ...shared, environment: { ...secrets, RECEIPTS_SECRET: seeds } })
        const kidIn = (answer: any, did: any) =>
          Effect.promise(async () => (await openReceipt(receiptIn(answer), did)).key.id)
        const before = yield* start(former.secret())
        const old = yield* pay(before, ledger)
        yield* before.stop
        const rotated = yield* start(`${next.secret()},${former.secret()}`)
        const between = yield* pay(rotated, ledger)
        yield* proven(rotated, between)
        // Puts the key in force now, instead of after half a minute.
        yield* rotated.sql`update receipts_keys set valid_until = date_trunc('second', clock_timestamp())
          where kid = ${kidOf(former).split("#")[1]!}`
        yield* rotated.sql`update receipts_keys set valid_from = date_trunc('second', clock_timestamp())
          where kid = ${kidOf(next).split("#")[1]!}`
        yield* rotated.stop

        const back = yield* start(former.secret())
        const fresh = yield* pay(back, ledger)
        const did = yield* didOf(back)
        expect(yield* kidIn(fresh, did)).toBe(kidOf(former))
        const ids = did.verificationMethod.map(({ id }: any) => id)
        expect(new Set(ids).size).toBe(ids.length)
        for (const paid of [old, between, fresh]) {
          const answer = yield* proven(back, paid)
          expect((yield* Effect.promise(() => verify(answer, did))).transaction).toBe(paid.transaction)
          // A document that retires the key earlier, or lacks it, repudiates nothing: the log's entries decide.
          const methods = did.verificationMethod.filter(({ id }: any) => id.includes("#log-"))
          const lying = did.verificationMethod.map((one: any) =>
            one.id.includes("#receipt-") ? { ...one, validFrom: 1, validUntil: 2 } : one
          )
          for (const verificationMethod of [methods, lying]) {
            const claims = yield* Effect.promise(() => verify(answer, { ...did, verificationMethod }))
            expect(claims.transaction).toBe(paid.transaction)
          }
        }
        const entries = yield* back.sql<{ text: string }>`select convert_from(substr(entry, 2), 'UTF8') as text
          from receipts_leaves where get_byte(entry, 0) = 2 order by index`
        const events = entries.map(({ text }) => JSON.parse(text)).filter(({ use }) => use === "receipt")
        expect(events.slice(-2).map(({ event, kid }) => [event, kid])).toEqual([
          ["announced", kidOf(former)],
          ["retired", kidOf(next)]
        ])
        // Rotates once more, to a known key.
        yield* back.stop
        const again = yield* start(`${next.secret()},${former.secret()}`)
        expect(yield* kidIn(yield* pay(again, ledger), yield* didOf(again))).toBe(kidOf(next))
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "a replica that does not hold the key in force yet says so, and leaves its receipts to one that does",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const [former, current, log] = [Keypair.random(), Keypair.random(), Keypair.random()]
        const shared = {
          ledgerUrl: ledger.ledgerUrl,
          database: yield* lasting(kind),
          stateFolder: yield* makeFolder,
          set: signing
        }
        const secrets = { SPONSOR_SECRET: Keypair.random().secret(), RECEIPTS_LOG_SECRET: log.secret() }
        const start = (seeds: string) =>
          startFacilitator({ ...shared, environment: { ...secrets, RECEIPTS_SECRET: seeds } })
        const behind = yield* start(former.secret())
        yield* proven(behind, yield* pay(behind, ledger))
        // As if another replica, restarted before this one, had announced it.
        const [kid, formerKid] = [current, former].map((pair) => kidOf(pair).split("#")[1]!)
        yield* behind.sql`with retired as (
            update receipts_keys set valid_until = date_trunc('second', clock_timestamp()) where kid = ${formerKid!})
          insert into receipts_keys (kid, purpose, public_key, valid_from)
          values (${kid!}, 'receipt', ${current.rawPublicKey()}, date_trunc('second', clock_timestamp()))`
        const isBehind = ({ text }: { readonly text: string }) => text.includes(`does not hold ${kid}`)
        yield* eventually(behind.ask("/health/ready"), isBehind)
        const paid = yield* pay(behind, ledger)
        expect(paid.extensions).toBeUndefined()
        // It does not log the outcome without a receipt either, although it is woken immediately.
        yield* Effect.sleep("3 seconds")
        expect(yield* behind.sql`select 1 from receipts_leaves where record like ${`%${paid.transaction}%`}`).toEqual(
          []
        )
        const ahead = yield* start(`${current.secret()},${former.secret()}`)
        const answer = yield* proven(ahead, paid)
        const did = yield* didOf(ahead)
        expect((yield* Effect.promise(() => openReceipt(answer.receipt, did))).key.id).toBe(kidOf(current))
        expect((yield* Effect.promise(() => verify(answer, did))).transaction).toBe(paid.transaction)
        expect(isBehind(yield* ahead.ask("/health/ready"))).toBe(false)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "a key on another machine signs; while that does not answer, payments settle as ever, and their receipts follow",
    () =>
      Effect.gen(function* () {
        const [ledger, signers] = [yield* startLedger, yield* startSigners]
        const facilitator = yield* startFacilitator({
          ledgerUrl: ledger.ledgerUrl,
          database: kind,
          environment: {
            ...signerEnvironment,
            SPONSOR_SECRET: Keypair.random().secret(),
            RECEIPTS_LOG_SECRET: Keypair.random().secret()
          },
          set: [...signing, `receipts.signer=${JSON.stringify(settingsOf("vault-transit", signers.url))}`]
        })
        const first = yield* pay(facilitator, ledger)
        const did = yield* didOf(facilitator)
        const signed = yield* proven(facilitator, first)
        expect((yield* Effect.promise(() => openReceipt(signed.receipt, did))).key.id).toBe(kidOf(signers.pair))
        expect((yield* Effect.promise(() => verify(signed, did))).transaction).toBe(first.transaction)
        signers.setFault("silent")
        const silent = yield* pay(facilitator, ledger)
        expect(silent.extensions).toBeUndefined()
        expect((yield* facilitator.ask(`/receipts/${silent.transaction}`)).status).toBe(404)
        signers.setFault(undefined)
        const later = yield* proven(facilitator, silent)
        expect((yield* Effect.promise(() => verify(later, did))).transaction).toBe(silent.transaction)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "a silent remote key holds no transaction that payments wait for",
    () =>
      Effect.gen(function* () {
        const [ledger, signers] = [yield* startLedger, yield* startSigners]
        const facilitator = yield* startFacilitator({
          ledgerUrl: ledger.ledgerUrl,
          database: kind,
          environment: {
            ...signerEnvironment,
            SPONSOR_SECRET: Keypair.random().secret(),
            RECEIPTS_LOG_SECRET: Keypair.random().secret()
          },
          set: [...signing, `receipts.signer=${JSON.stringify(settingsOf("vault-transit", signers.url))}`]
        })
        const first = yield* pay(facilitator, ledger)
        yield* proven(facilitator, first)
        signers.setFault("silent")
        let longest = 0
        yield* Effect.gen(function* () {
          const begun = performance.now()
          yield* facilitator.sql`select 1`
          longest = Math.max(longest, performance.now() - begun)
          yield* Effect.sleep("50 millis")
        }).pipe(Effect.forever, Effect.forkScoped)
        for (let times = 0; times < 3; times++) yield* pay(facilitator, ledger)
        // A turn has begun, and waited for the signer as long as it does.
        yield* Effect.sleep("4 seconds")
        expect(longest).toBeLessThan(1_500)
        signers.setFault(undefined)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )

  it.live(
    "the sponsor's own key signs no receipts",
    () =>
      Effect.gen(function* () {
        const sponsor = Keypair.random().secret()
        const facilitator = yield* startFacilitator({
          database: kind,
          channels: 1,
          environment: { SPONSOR_SECRET: sponsor, RECEIPTS_SECRET: sponsor },
          set: ["plugins=[ledger-local,x402-exact,receipts]", "receipts.host=pay.example"]
        })
        const { json } = yield* facilitator.ask("/health/ready")
        expect(JSON.stringify(json)).toContain("receipts")
        expect((yield* facilitator.ask("/.well-known/did.json")).status).toBe(404)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)) as Effect.Effect<void>,
    240_000
  )
})
