// A payment's receipt: in its settle answer, in the log with a proof, always with the same bytes, also after a restart,
// and hidden from others.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect, FileSystem } from "effect"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { describe } from "vitest"
import { type AccountChallenge, AccountChallenges } from "../../../kernel/accounts/AccountChallenges.ts"
import { databaseKinds, lasting } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { fetchAll, hashText, outcomeLeaf, readCheckpoint, readReceipt, rootOf } from "./checkReceipt.ts"
import { receiptSecrets } from "./secrets.ts"

const environment = {
  ...receiptSecrets,
  FACILITATOR_API_KEYS: "shop:shop-secret-0123456789,other:other-secret-01234567"
}
const shop = { authorization: "Bearer shop-secret-0123456789" }
const other = { authorization: "Bearer other-secret-01234567" }

const startLedger = startFacilitator({ closeMillis: 500, channels: 1, set: ["plugins=[ledger-local,x402-exact]"] })

const proven = (facilitator: Facilitator, hash: string, headers: Record<string, string> = shop) =>
  eventually(
    facilitator.ask(`/receipts/${hash}?proof=1`, { headers }),
    ({ json, status }) => status === 200 && json.outcomes[0].proof !== null
  )

const keyOf = (facilitator: Facilitator, origin: string) =>
  Effect.map(
    facilitator.ask("/log/epochs"),
    ({ json }) => json.epochs.find((one: any) => one.origin === origin).keys[0]
  )

const signedBy = (pair: Keypair, facilitator: Facilitator, hash: string, given?: string) =>
  Effect.gen(function* () {
    const post = (path: string, body: unknown) =>
      facilitator.ask(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      })
    const account = pair.publicKey()
    const challenge: string = given ?? (yield* post("/receipts/challenge", { account })).json.challenge
    const digest = createHash("sha256").update(`Stellar Signed Message:\n${challenge}`).digest()
    const signature = Buffer.from(pair.sign(digest)).toString("base64")
    return yield* post(`/receipts/${hash}`, { account, challenge, signature })
  })

/** The command's fetching: by an account, by an API key, for a stranger, and through a host that relays a challenge. */
const fetchesAlike = async (
  url: string,
  hash: string,
  jws: string,
  { payee, stranger }: Readonly<Record<"payee" | "stranger", Keypair>>
) => {
  const folder = await mkdtemp(join(tmpdir(), "fetch-receipts-"))
  const signed: Array<string> = []
  const relay = createServer(async (request, response) => {
    const body = await text(request)
    if (request.url !== "/receipts/challenge") signed.push(body)
    const { method = "GET" } = request
    const answer = await fetch(`${url}${request.url}`, {
      method,
      body,
      headers: { "content-type": "application/json" }
    })
    response.writeHead(answer.status).end(await answer.text())
  })
  try {
    const fetched = async (secret: string, at = url, places = [hash]) => {
      const secretFile = join(folder, "secret")
      await writeFile(secretFile, `${secret}\n`)
      return fetchAll({ places, url: at, secretFile })
    }
    for (const secret of [payee.secret(), "shop-secret-0123456789"]) {
      const answers = await fetched(secret, url, [hash, hash])
      expect(answers.map(({ receipt }) => receipt)).toEqual([jws, jws])
    }
    await expect(fetched(stranger.secret())).rejects.toThrow("404")
    await expect(fetched("another-secret-0123456")).rejects.toThrow("401")
    // Another host relays the facilitator's challenge, to read the payee's receipts with its signature.
    const port = await freePort()
    await once(relay.listen(port, "127.0.0.1"), "listening")
    await expect(fetched(payee.secret(), `http://127.0.0.1:${port}`)).rejects.toThrow("asks for a signature of")
    expect(signed).toEqual([])
    await expect(fetched(payee.secret(), "http://pay.example")).rejects.toThrow("is not https")
    // Seeds of a rotation, or a labelled one, are sent to no facilitator as an API key.
    for (const seeds of [`${payee.secret()},${stranger.secret()}`, `payee:${payee.secret()}`])
      await expect(fetched(seeds)).rejects.toThrow("nothing was sent: the secret file has a seed beside other text")
    const changed = jws.replace(/.(?=.{20}$)/u, (one) => (one === "A" ? "B" : "A"))
    await writeFile(join(folder, "kept"), changed)
    await expect(fetched(payee.secret(), url, [join(folder, "kept")])).rejects.toThrow("another receipt now")
  } finally {
    relay.close()
    await rm(folder, { recursive: true })
  }
}

const isShared = databaseKinds.filter((kind) => kind === "postgres")
describe.skipIf(isShared.length === 0)("receipts on a database whose tables of them are locked", () => {
  it.live(
    "keep no payment waiting, and follow once they are free",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database: "postgres",
          environment: receiptSecrets,
          set: ["plugins=[ledger-local,x402-exact,receipts]", "receipts.host=pay.example"]
        })
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account()).publicKey()
        const identifier = { info: { required: true, id: "paid-while-tables-are-locked" } }
        const extensions = { "payment-identifier": identifier }
        const { body } = yield* facilitator.payment({ payer, payTo, amount: 1n, extensions })
        const { sql } = facilitator
        const receiptIn = ({ json }: { readonly json: any }) => json.extensions?.["tollkeeper-receipt"]
        const [settled, again] = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`lock table receipts_keys, receipts_epochs, receipts_leaves, receipts_nodes,
              receipts_checkpoints, receipts_receipts in access exclusive mode`
            const key = { "idempotency-key": "paid-while-tables-are-locked" }
            const settled = yield* facilitator.settle(body, key)
            return [settled, yield* facilitator.settle(body, key)] as const
          })
        )
        expect(receiptIn(settled)).toBeDefined()
        expect(again.json).toMatchObject({ success: true, transaction: settled.json.transaction })
        const later = yield* eventually(
          facilitator.ask(`/receipts/${settled.json.transaction}`),
          ({ status }) => status === 200
        )
        expect(later.json.receipt).toBe(receiptIn(settled).info.receipt)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})

describe.each(databaseKinds)("receipts on %s", (kind) => {
  it.live(
    "an exact payment is answered with a receipt that is logged once and proven, also across a restart",
    () =>
      Effect.gen(function* () {
        const ledger = yield* startLedger
        const payer = yield* ledger.account()
        const payee = yield* ledger.account()
        const database = yield* lasting(kind)
        const start = startFacilitator({
          ledgerUrl: ledger.ledgerUrl,
          database,
          stateFolder: yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped(),
          environment,
          set: ["plugins=[x402-exact,receipts]", "receipts.host=pay.example:8443"]
        })
        const first = yield* start
        const { body } = yield* ledger.payment({ payer, payTo: payee.publicKey(), amount: 12_345n })
        const settled = yield* first.settle(body, shop)
        expect(settled.json).toMatchObject({ success: true })
        const hash = settled.json.transaction
        const jws = settled.json.extensions["tollkeeper-receipt"].info.receipt
        expect(Buffer.from(settled.text).toString("base64").length).toBeLessThan(4_096)

        const did = (yield* first.ask("/.well-known/did.json")).json
        expect(did.id).toBe("did:web:pay.example%3A8443")
        const claims = readReceipt(jws, did)
        expect(claims).toMatchObject({
          v: 1,
          iss: did.id,
          network: "stellar:testnet",
          transaction: hash,
          payer: payer.publicKey(),
          payTo: payee.publicKey(),
          amount: "12345",
          scheme: "exact"
        })

        const shown = yield* proven(first, hash)
        expect(shown.json.receipt).toBe(jws)
        const [{ proof, record, salt }] = shown.json.outcomes
        expect(JSON.parse(record)).toMatchObject({ outcome: "settled", transaction: hash, receipt: hashText(jws) })
        const check = (proof: any, key: string, record: string, salt: string) => {
          const checkpoint = readCheckpoint(proof.checkpoint, key)
          expect(checkpoint).toMatchObject({ origin: "pay.example:8443/log", size: proof.size })
          expect(rootOf(outcomeLeaf(record, salt), proof.hashes, proof.index, proof.size)).toBe(checkpoint.root)
        }
        const key = yield* keyOf(first, "pay.example:8443/log")
        check(proof, key, record, salt)
        expect(() => check(proof, key, record.replace("12345", "12346"), salt)).toThrow()

        // Another key's caller and a stranger's account get the same 404 as for an unknown hash; payer and payTo can
        // read it.
        expect((yield* first.ask(`/receipts/${hash}`, { headers: other })).status).toBe(404)
        expect((yield* first.ask(`/receipts/${hash}`)).status).toBe(401)
        expect((yield* signedBy(payer, first, hash)).json.receipt).toBe(jws)
        expect((yield* signedBy(payee, first, hash)).json.receipt).toBe(jws)
        expect((yield* signedBy(yield* ledger.account(), first, hash)).status).toBe(404)
        yield* Effect.promise(() => fetchesAlike(first.url, hash, jws, { payee, stranger: Keypair.random() }))
        // A sign-in challenge cannot read a receipt.
        const challenges = Context.get(first.services as Context.Context<AccountChallenges>, AccountChallenges)
        const signIn = yield* challenges.make("session", new URL(first.url).host, payer.publicKey())
        const refused = yield* signedBy(payer, first, hash, (signIn as AccountChallenge).challenge)
        expect([refused.status, refused.json.message]).toEqual([403, expect.stringMatching(/another purpose/)])

        const leaves = (facilitator: Facilitator) =>
          facilitator.sql`select epoch, index from receipts_leaves where transaction is not null`
        expect(yield* leaves(first)).toHaveLength(1)
        yield* first.stop
        const second = yield* start
        const again = yield* second.payment({ payer, payTo: payee.publicKey(), amount: 1n })
        const next = yield* second.settle(again.body, shop)
        const later = yield* proven(second, next.json.transaction)
        expect(yield* leaves(second)).toHaveLength(2)
        expect(later.json.outcomes[0].proof).toMatchObject({ epoch: 1, index: proof.index + 1 })
        // The same receipt as before, now proven in the larger tree, by the key of the first process.
        const old = yield* proven(second, hash)
        expect(old.json.receipt).toBe(jws)
        check(old.json.outcomes[0].proof, key, record, salt)
        const tile = yield* second.ask(`/log/tile/0/000.p/${proof.index + 1}`)
        expect(tile.headers.get("cache-control")).toContain("immutable")
        expect((yield* second.ask(`/log/tile/0/000`)).status).toBe(404)
        expect((yield* second.ask(`/log/checkpoint`)).text).toContain(`\n${proof.index + 2}\n`)
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    240_000
  )
})
