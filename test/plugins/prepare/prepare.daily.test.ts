// `POST /prepare` over whole facilitators: its payments are verified and settled as signed, in `exact` and in every
// profile of `upto`, for an account and for a wallet; a reference client refuses each lie.
import { expect, it } from "@effect/vitest"
import { buildAuthorizationEntryPreimage, hash, Keypair, Networks, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createServer } from "node:http"
import { signPrepared } from "../../../examples/client/prepared.mjs"
import { draftWasm } from "../../../plugins/x402-upto/contract/drafts/draftWasm.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { countStatements } from "../../support/countStatements.ts"
import { contractAddressOf, deployContract } from "../../support/deployContract.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { makeSmartWallet } from "../../support/smartWallet.ts"
import { draftProfiles } from "../../support/uptoProfiles.ts"

const deployer = Keypair.fromRawEd25519Seed(hash(Buffer.from("tollkeeper prepare drafts")))
const modules = { "stateless-salt": "stateless", "stateful-nonce": "stateful", "seven-arguments": "seven" } as const
const saltOf = (at: number) => new Uint8Array(32).fill(at + 1)
const profiles = draftProfiles.map((profile, at) => `${profile}: ${contractAddressOf(deployer, saltOf(at))}`)

/** Ledgers of a second: a signature of five minutes lives for sixty of them. */
const start = (set: ReadonlyArray<string> = []) => startFacilitator({ closeMillis: 1_000, set })

const termsOf = (payTo: string, rest: Record<string, unknown> = {}) => ({
  scheme: "exact",
  network: "stellar:testnet",
  amount: "10000",
  asset: testnetUsdc,
  payTo,
  maxTimeoutSeconds: 300,
  extra: { areFeesSponsored: true },
  ...rest
})
type Terms = ReturnType<typeof termsOf>

const prepare = (facilitator: Facilitator, paymentRequirements: unknown, payer: string, headers = {}) =>
  facilitator.ask("/prepare", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ x402Version: 2, paymentRequirements, payer })
  })

const bodyOf = (terms: Terms, transaction: string, amount = terms.amount) => ({
  x402Version: 2,
  paymentPayload: {
    x402Version: 2,
    payload: { transaction },
    resource: { url: "http://127.0.0.1/weather" },
    accepted: terms
  },
  paymentRequirements: { ...terms, amount }
})

/** The envelope with a signature in the place where the SDK finds the entry's. */
const withSignature = (transaction: string, signature: xdr.ScVal): string => {
  const envelope: any = xdr.TransactionEnvelope.schema.decode(Buffer.from(transaction, "base64"))
  const [operation] = envelope.v1.tx.operations
  operation.body.invokeHostFunctionOp.auth[0].credentials.address.signature = signature.toXdrObject()
  return Buffer.from(xdr.TransactionEnvelope.schema.encode(envelope)).toString("base64")
}

const signatureOf = (payer: Keypair, payload: Uint8Array) =>
  xdr.ScVal.scvVec([
    xdr.ScVal.scvMap([
      new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("public_key"), val: xdr.ScVal.scvBytes(payer.rawPublicKey()) }),
      new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("signature"), val: xdr.ScVal.scvBytes(payer.sign(payload)) })
    ])
  ])

/** The hash that the SDK computes for the unsigned entry. */
const hashBySdk = (prepared: any): string =>
  Buffer.from(
    hash(
      buildAuthorizationEntryPreimage(
        xdr.SorobanAuthorizationEntry.fromXdr(prepared.authorizationEntry, "base64"),
        prepared.expires.ledger,
        Networks.TESTNET
      ).toXdr()
    )
  ).toString("hex")

const usdc = testnetUsdc

it.live(
  "what is laid out is verified and settled, without SQL and with one simulation",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start()
      const payer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const terms = termsOf(payTo)
      const { statements, value: answer } = yield* countStatements(prepare(facilitator, terms, payer.publicKey()))
      expect([answer.status, statements], answer.text).toEqual([200, 0])
      const prepared = answer.json
      expect(prepared).toMatchObject({
        network: "stellar:testnet",
        payer: payer.publicKey(),
        fees: { sponsored: true }
      })
      expect(prepared.toSign.hash).toBe(hashBySdk(prepared))
      expect(prepared.toSign.hash).toBe(
        Buffer.from(hash(Buffer.from(prepared.toSign.preimage, "base64"))).toString("hex")
      )
      expect(prepared.expires.ledger - prepared.expires.latestLedger).toBe(60)
      expect(Number(prepared.fees.resourceStroops)).toBeGreaterThan(0)
      const signature = signatureOf(payer, Buffer.from(prepared.toSign.hash, "hex"))
      const body = bodyOf(terms, withSignature(prepared.transaction, signature))
      expect((yield* facilitator.verify(body)).json).toEqual({ isValid: true, payer: payer.publicKey() })
      expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true, amount: "10000" })
      expect(yield* facilitator.balance(payTo)).toBe(10_000n)
      // A second one of the same terms is another authorization.
      const again = (yield* prepare(facilitator, terms, payer.publicKey())).json
      expect(again.nonce).not.toBe(prepared.nonce)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "every profile of upto is laid out as its contract takes it, and settled by use",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start([`networks.ledger:testnet.upto_profiles={${profiles.join()}}`])
      for (const [at, profile] of draftProfiles.entries()) {
        const wasm = Buffer.from(draftWasm[modules[profile]].base64, "base64")
        yield* Effect.promise(() => deployContract(facilitator.ledgerUrl, deployer, wasm, saltOf(at)))
      }
      const payer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const { kinds } = (yield* facilitator.ask("/supported")).json
      const { extra } = kinds.find((one: any) => one.scheme === "upto" && one.network === "stellar:testnet")
      for (const offered of extra.profiles) {
        const terms = termsOf(payTo, { scheme: "upto", extra: { areFeesSponsored: true, ...offered } })
        const answer = yield* prepare(facilitator, terms, payer.publicKey())
        expect([offered.profile, answer.status], answer.text).toEqual([offered.profile, 200])
        expect(answer.json.toSign.hash).toBe(hashBySdk(answer.json))
        const signature = signatureOf(payer, Buffer.from(answer.json.toSign.hash, "hex"))
        const transaction = withSignature(answer.json.transaction, signature)
        const verified = yield* facilitator.verify(bodyOf(terms, transaction))
        expect(verified.json, offered.profile).toEqual({ isValid: true, payer: payer.publicKey() })
        const settled = yield* facilitator.settle(bodyOf(terms, transaction, "2500"))
        expect(settled.json, offered.profile).toMatchObject({ success: true, amount: "2500" })
      }
      expect(yield* facilitator.balance(payTo)).toBe(2_500n * BigInt(extra.profiles.length))
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a wallet is shown what its __check_auth will be given, and pays by it",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start()
      const funder = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const wallet = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 50_000n))
      const terms = termsOf(payTo)
      const prepared = (yield* prepare(facilitator, terms, wallet.contract)).json
      const { checkAuth } = prepared.toSign
      expect(checkAuth).toMatchObject({ contract: wallet.contract, signaturePayload: prepared.toSign.hash })
      expect(checkAuth.contexts).toMatchObject([{ contract: usdc, functionName: "transfer" }])
      if (!("sign" in wallet)) throw new Error("no wallet")
      const signature = wallet.sign(Buffer.from(checkAuth.signaturePayload, "hex")) as xdr.ScVal
      const body = bodyOf(terms, withSignature(prepared.transaction, signature))
      expect((yield* facilitator.settle(body)).json).toMatchObject({ success: true, payer: wallet.contract })
      expect(yield* facilitator.balance(payTo)).toBe(10_000n)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "bad input and payments that would fail are refused with their reason",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start()
      const payer = (yield* facilitator.account(5_000n)).publicKey()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const cases: ReadonlyArray<readonly [unknown, unknown, number, string]> = [
        [termsOf(payTo), "GABC", 400, "invalid_request"],
        [termsOf("seller"), payer, 400, "invalid_request"],
        [{ scheme: "exact" }, payer, 400, "invalid_request"],
        [termsOf(payTo, { scheme: "batch" }), payer, 422, "unsupported_scheme"],
        [termsOf(payTo, { amount: "0" }), payer, 422, "invalid_exact_stellar_payload_wrong_amount"],
        [termsOf(payer), payer, 422, "invalid_exact_stellar_payload_self_payment"],
        [termsOf(payTo), payer, 422, "payment_would_fail"]
      ]
      for (const [terms, from, status, error] of cases) {
        const answer = yield* prepare(facilitator, terms, from as string)
        expect([answer.status, answer.json.error], answer.text).toEqual([status, error])
      }
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a key is required where keys are configured, unless the operator opens it",
  () =>
    Effect.gen(function* () {
      const environment = { TOLLKEEPER_API_KEYS: "shop:0123456789abcdef0123456789abcdef" }
      const statuses: Array<number> = []
      for (const set of [[], ["prepare.public=true"]]) {
        const facilitator = yield* startFacilitator({ environment, set: ["api_keys_env=TOLLKEEPER_API_KEYS", ...set] })
        const terms = termsOf((yield* facilitator.account(0n)).publicKey())
        const payer = (yield* facilitator.account()).publicKey()
        statuses.push((yield* prepare(facilitator, terms, payer)).status)
        const headers = { authorization: "Bearer 0123456789abcdef0123456789abcdef" }
        statuses.push((yield* prepare(facilitator, terms, payer, headers)).status)
      }
      expect(statuses).toEqual([401, 200, 200, 200])
    }).pipe(Effect.scoped),
  240_000
)

/** A facilitator that lies: the real one's answer for other terms, or changed. */
const lying = async (ask: (body: any) => Promise<any>) => {
  const server = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk) => (text += chunk))
    request.on("end", async () => {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify(await ask(JSON.parse(text))))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, close: () => server.close() }
}

it.live(
  "a client refuses a facilitator that asks for another signature, and signs for an honest one",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start()
      const payer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const thief = (yield* facilitator.account(0n)).publicKey()
      const { kinds } = (yield* facilitator.ask("/supported")).json
      const { extra } = kinds.find((one: any) => one.scheme === "upto" && one.network === "stellar:testnet")
      const upto = termsOf(payTo, { scheme: "upto", extra })
      const exact = termsOf(payTo)
      const short = termsOf(payTo, { maxTimeoutSeconds: 60 })
      const honest = (body: any) =>
        fetch(`${facilitator.url}/prepare`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body)
        }).then((response) => response.json() as any)
      const other = (terms: any) => (body: any) => honest({ ...body, paymentRequirements: terms })
      const native = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
      const lies: ReadonlyArray<readonly [string, Terms, (body: any) => Promise<any>]> = [
        ["recipient", exact, other({ ...exact, payTo: thief })],
        ["amount", exact, other({ ...exact, amount: "10001" })],
        ["contract", exact, other({ ...exact, asset: native })],
        ["nested call", exact, other(upto)],
        ["far expiry", short, other({ ...short, maxTimeoutSeconds: 300 })],
        [
          "far expiry and ledger",
          exact,
          async (body) => {
            const given = await other({ ...exact, maxTimeoutSeconds: 300 })(body)
            return { ...given, expires: { ...given.expires, ledger: 9_000, latestLedger: 9_000 } }
          }
        ],
        ["upto recipient", upto, other({ ...upto, payTo: thief })],
        ["upto amount", upto, other({ ...upto, amount: "10001" })],
        ["upto without its allowance", upto, other(exact)],
        [
          "hash alone",
          exact,
          async (body) => ({
            ...(await honest(body)),
            toSign: (await other({ ...exact, amount: "1" })(body)).toSign
          })
        ]
      ]
      const options = {
        secret: payer.secret(),
        maxAmount: 1_000_000n,
        rpcUrl: facilitator.ledgerUrl,
        uptoContracts: [extra.uptoContract]
      }
      for (const [name, terms, lie] of lies) {
        const liar = yield* Effect.promise(() => lying(lie))
        const outcome = yield* Effect.promise(() =>
          signPrepared(terms, { ...options, facilitator: liar.url }).then(
            () => "signed",
            (error) => error.constructor.name
          )
        )
        liar.close()
        expect([name, outcome]).toEqual([name, "SignatureRefused"])
      }
      for (const terms of [exact, upto]) {
        const payload = yield* Effect.promise(() => signPrepared(terms, { ...options, facilitator: facilitator.url }))
        const settled = yield* facilitator.settle(bodyOf(terms, payload.transaction))
        expect(settled.json, terms.scheme).toMatchObject({ success: true, amount: "10000" })
      }
      expect(yield* facilitator.balance(payTo)).toBe(20_000n)
      expect(yield* facilitator.balance(thief)).toBe(0n)
    }).pipe(Effect.scoped),
  240_000
)
