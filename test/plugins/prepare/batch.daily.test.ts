// A batch deposit through `POST /prepare`, over a whole facilitator and a real seller. The clients without an SDK, in
// Node and in Python, deposit once, pay with vouchers and get the exact rest back. A wallet deposits. A lost channel is
// recovered from the seller only with proof. Each lie of a facilitator is refused before anything is signed.
import { assert, it } from "@effect/vitest"
import { Keypair, type xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { execFile, spawnSync } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { BatchStellarServer, keyAuthorizer } from "../../../examples/batch/BatchStellarServer.ts"
import { startBatchSeller } from "../../../examples/batch/startBatchSeller.ts"
import { pay, refund, signPrepared } from "../../../examples/client/prepared.mjs"
import { noteCorrected, refundPayload } from "../../../examples/client/preparedBatch.mjs"
import { root } from "../../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { passkeyWallet } from "../../support/passkeyWallet.ts"
import { makeSmartWallet } from "../../support/smartWallet.ts"

const start = startFacilitator({ closeMillis: 1_000 })
const price = 1_000n

const contractOf = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.ask("/supported"),
    ({ json }) => json.kinds.find((one: any) => one.scheme === "batch-settlement").extra.batchContract as string
  )

const sell = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const receiver = (yield* facilitator.account(0n)).publicKey()
  const authorizer = keyAuthorizer(Keypair.random().secret())
  const server = new BatchStellarServer({ receiver, authorizer, minDepositTimes: 1 })
  const seller = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startBatchSeller({
        server,
        facilitator: facilitator.url,
        network: "stellar:testnet",
        asset: testnetUsdc,
        price
      })
    ),
    (one) => Effect.promise(() => one.close())
  )
  const required: any = yield* Effect.promise(() => fetch(`${seller.url}/page`).then((answer) => answer.json()))
  return { page: `${seller.url}/page`, receiver, server, terms: required.accepts[0] }
})

const python =
  ["/usr/bin/python3", "python3"].find(
    (one) => spawnSync(one, ["-c", "import cryptography, sys; assert sys.version_info >= (3, 10)"]).status === 0
  ) ?? ""
if (python === "") console.log("left out: there is no python3 with the package cryptography here")

const buyByPython = (url: string, env: Readonly<Record<string, string>>) =>
  Effect.promise(() =>
    promisify(execFile)(python, [join(root, "examples", "python", "buy.py"), url], {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env }
    }).then(
      ({ stdout }) => JSON.parse(stdout) as any,
      ({ stderr, stdout }) => JSON.parse(stdout === "" ? JSON.stringify({ stderr }) : stdout) as any
    )
  )

it.live(
  "one deposit pays many requests, a lost channel is corrected by proof, and the rest is refunded",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const { page, server } = yield* sell(facilitator)
      const contract = yield* contractOf(facilitator)
      const buyer = yield* facilitator.account(500_000n)
      const channels = new Map<string, { charged: bigint; balance: bigint; signed?: bigint }>()
      const options = {
        secret: buyer.secret(),
        facilitator: facilitator.url,
        maxAmount: 10_000n,
        rpcUrl: facilitator.ledgerUrl,
        batch: { contracts: [contract], depositTimes: 5, channels }
      }
      const buy = Effect.promise(() => pay(page, options))
      for (const at of [1n, 2n, 3n]) {
        const { receipt, response } = yield* buy
        assert.deepStrictEqual([response.status, receipt?.success], [200, true], JSON.stringify(receipt))
        const [known] = channels.values()
        assert.deepStrictEqual(known, { charged: at * price, balance: 5n * price, signed: at * price })
      }
      assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 495_000n)
      // The record is lost: nothing is signed for a total that no own voucher proves.
      channels.clear()
      const again = yield* buy
      assert.deepStrictEqual([again.response.status, [...channels.values()][0]!.charged], [200, 4n * price])
      // The fifth payment uses up the deposit; the sixth tops it up.
      yield* buy
      assert.strictEqual((yield* buy).response.status, 200)
      assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 490_000n)
      const [charged] = yield* Effect.promise(() => server.channels.list())
      assert.strictEqual(charged!.chargedCumulativeAmount, "6000")
      const refunded = yield* Effect.promise(() => refund(page, options))
      assert.strictEqual(refunded.receipt?.success, true, JSON.stringify(refunded.receipt))
      assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 494_000n)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "an origin that copies a seller's terms stops no channel of that seller",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const { page } = yield* sell(facilitator)
      const secret = (yield* facilitator.account(500_000n)).secret()
      const batch = { contracts: [yield* contractOf(facilitator)], depositTimes: 5 }
      const options = { secret, facilitator: facilitator.url, maxAmount: 10_000n, rpcUrl: facilitator.ledgerUrl, batch }
      const sent: Array<any> = []
      // It answers the copied terms, and then a charge above their price.
      const copy = createServer(async (request, response) => {
        const payment = request.headers["payment-signature"]
        if (payment === undefined) {
          const { headers, status } = await fetch(page)
          return void response.writeHead(status, { "payment-required": headers.get("payment-required") ?? "" }).end()
        }
        sent.push(JSON.parse(Buffer.from(String(payment), "base64").toString()).payload)
        const receipt = { success: true, transaction: "", network: "stellar:testnet", extra: { chargedAmount: "9999" } }
        const header = Buffer.from(JSON.stringify(receipt)).toString("base64")
        response.writeHead(200, { "payment-response": header }).end()
      }).listen(0, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => copy.close()))
      const statusOf = (url: string) =>
        Effect.map(
          Effect.promise(() => pay(url, options)),
          ({ response }) => response.status
        )
      assert.strictEqual(yield* statusOf(page), 200)
      assert.strictEqual(yield* statusOf(`http://127.0.0.1:${(copy.address() as AddressInfo).port}/page`), 200)
      assert.strictEqual(sent.length, 1)
      assert.strictEqual(yield* statusOf(page), 200)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a wallet deposits by what its __check_auth is given, and an account's key signs its vouchers",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const { page } = yield* sell(facilitator)
      const contract = yield* contractOf(facilitator)
      const funder = yield* facilitator.account()
      const wallet = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 50_000n))
      if (!("sign" in wallet)) throw new Error("no wallet")
      const options = {
        secret: Keypair.random().secret(),
        facilitator: facilitator.url,
        maxAmount: 10_000n,
        batch: { contracts: [contract], depositTimes: 5, channels: new Map() },
        wallet: {
          contract: wallet.contract,
          sign: (hash: Uint8Array) => (wallet.sign(Buffer.from(hash)) as xdr.ScVal).toXdr()
        }
      }
      for (const _ of [1, 2]) {
        const { receipt, response } = yield* Effect.promise(() => pay(page, options))
        assert.deepStrictEqual([response.status, receipt?.payer], [200, wallet.contract], JSON.stringify(receipt))
      }
      const refunded = yield* Effect.promise(() => refund(page, options))
      assert.deepStrictEqual([refunded.receipt?.success, refunded.receipt?.amount], [true, "3000"])
    }).pipe(Effect.scoped),
  240_000
)

it("takes a seller's total by a voucher of its own key alone, and never more than that voucher's", () => {
  const [payTo, authorizer] = [Keypair.random().publicKey(), Keypair.random().publicKey()]
  const extra = { receiverAuthorizer: authorizer, withdrawDelay: 900, batchContract: testnetUsdc }
  const terms = { scheme: "batch-settlement", network: "stellar:testnet", asset: testnetUsdc, amount: "10", payTo }
  const offered = { ...terms, maxTimeoutSeconds: 60, extra }
  const channels = new Map<string, { charged: bigint; balance: bigint; signed?: bigint }>()
  const options = { secret: Keypair.random().secret(), maxAmount: 10n, batch: { contracts: [testnetUsdc], channels } }
  const voucherFor = (charged: bigint, secret = options.secret) => {
    const known = new Map()
    const own = { ...options, secret, batch: { ...options.batch, channels: known } }
    known.set(refundPayload(offered, own).voucher.channelId, { charged, balance: 100n })
    return refundPayload(offered, own).voucher
  }
  const { channelId, signature } = voucherFor(40n)
  const shown = (charged: string, signedMaxClaimable: string, by = signature, balance = "100") => ({
    accepts: [
      {
        ...offered,
        extra: {
          ...extra,
          channelState: { channelId, balance, chargedCumulativeAmount: charged },
          voucherState: { signedMaxClaimable, signature: by }
        }
      }
    ]
  })
  const stranger = voucherFor(40n, Keypair.random().secret()).signature
  const takes = (required: unknown, sent = { max: 10n, before: 0n }) => noteCorrected(required, offered, options, sent)
  assert.deepStrictEqual(
    [shown("41", "40"), shown("41", "41"), shown("40", "40", stranger), shown("-1", "40"), { accepts: [] }].map((one) =>
      takes(one)
    ),
    [false, false, false, false, false]
  )
  assert.strictEqual(channels.size, 0)
  // The voucher that the seller has just received proves no earlier total.
  assert.isFalse(takes(shown("40", "40"), { max: 40n, before: 30n }))
  // Nor does its signature with a total whose bytes end alike.
  assert.isFalse(takes(shown("90", String((1n << 128n) + 40n)), { max: 40n, before: 30n }))
  assert.isTrue(takes(shown("30", "40")))
  assert.deepStrictEqual(channels.get(channelId), { charged: 30n, balance: 100n, signed: 40n })
  assert.isTrue(takes(shown("40", "40"), { max: 50n, before: 40n }))
  // A seller that reports a lower deposit is ignored too.
  const poorer = shown("40", "40")
  poorer.accepts[0]!.extra.channelState.balance = "0"
  assert.isTrue(takes(poorer, { max: 50n, before: 40n }))
  assert.strictEqual(channels.get(channelId)!.balance, 100n)
})

it.live(
  "a passkey's wallet pays by what it was shown, through the client",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const funder = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const passkey = passkeyWallet(50_000n)
      const { contract } = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 50_000n, passkey))
      const accepted = {
        scheme: "exact",
        network: "stellar:testnet",
        asset: testnetUsdc,
        amount: "1000",
        payTo,
        maxTimeoutSeconds: 300,
        extra: { areFeesSponsored: true }
      }
      const payload = yield* Effect.promise(() =>
        signPrepared(accepted, {
          secret: Keypair.random().secret(),
          facilitator: facilitator.url,
          maxAmount: 10_000n,
          wallet: { contract, sign: (hash: Uint8Array) => passkey.sign(hash).toXdr() }
        })
      )
      const paymentPayload = { x402Version: 2, payload, resource: { url: "http://127.0.0.1/page" }, accepted }
      const settled = yield* facilitator.settle({ x402Version: 2, paymentPayload, paymentRequirements: accepted })
      assert.deepStrictEqual([settled.json.success, settled.json.payer], [true, contract], settled.text)
      assert.strictEqual(yield* facilitator.balance(payTo), 1_000n)
    }).pipe(Effect.scoped),
  240_000
)

/** A facilitator that lies: the answer of the real one to another request, or changed. */
const startLiar = (honest: (body: unknown) => Promise<any>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const state = { lie: (body: any): Promise<any> => honest(body) }
      const server = createServer((request, response) => {
        let text = ""
        request.on("data", (chunk) => (text += chunk))
        request.on("end", async () => {
          const answer = await state.lie(JSON.parse(text))
          response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { state, server, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

it.live(
  "each lie about a deposit is refused by both clients, and nothing is signed",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const { page, receiver, terms } = yield* sell(facilitator)
      const other = yield* sell(facilitator)
      const contract = yield* contractOf(facilitator)
      const buyer = yield* facilitator.account(5_000_000n)
      const thief = yield* facilitator.account(0n)
      const honest = async (body: any) => {
        const answer = await fetch(`${facilitator.url}/prepare`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body)
        })
        const given: any = await answer.json()
        if (answer.status !== 200) throw new Error(JSON.stringify(given))
        return given
      }
      const liar = yield* startLiar(honest)
      const inTerms = (changes: object) => (body: any) =>
        honest({ ...body, paymentRequirements: { ...body.paymentRequirements, ...changes } })
      const inExtra = (changes: object) => inTerms({ extra: { ...terms.extra, ...changes } })
      const inChoices = (changes: object) => (body: any) =>
        honest({ ...body, choices: { ...body.choices, ...changes } })
      const exact = { scheme: "exact", amount: "5000", extra: { areFeesSponsored: true } }
      const lies: Readonly<Record<string, (body: any) => Promise<any>>> = {
        recipient: inTerms({ payTo: thief.publicKey() }),
        "another seller's channel": inTerms({ payTo: other.receiver, extra: other.terms.extra }),
        "price of the first voucher": inTerms({ amount: "1001" }),
        authorizer: inExtra({ receiverAuthorizer: thief.publicKey() }),
        delay: inExtra({ withdrawDelay: 86_400 }),
        deposit: inChoices({ amount: "100001" }),
        "charged before": inChoices({ charged: "4000" }),
        "key of the vouchers": inChoices({ payerAuthorizer: thief.publicKey() }),
        salt: inChoices({ salt: "11".repeat(32) }),
        "a transfer instead": inTerms(exact),
        "far expiry": inTerms({ maxTimeoutSeconds: 300 }),
        "voucher alone": async (body) => {
          const given = await honest(body)
          const lied = await honest({ ...body, choices: { ...body.choices, charged: "9000" } })
          return { ...given, toSign: { ...given.toSign, beside: lied.toSign.beside } }
        },
        "no voucher": async (body) => {
          const given = await honest(body)
          return { ...given, toSign: { ...given.toSign, beside: undefined } }
        }
      }
      const batch = { contracts: [contract], channels: new Map() }
      const options = { secret: buyer.secret(), maxAmount: 10_000n, rpcUrl: facilitator.ledgerUrl }
      const env = {
        BUYER_SECRET: buyer.secret(),
        FACILITATOR_URL: liar.url,
        LEDGER_RPC_URL: facilitator.ledgerUrl,
        BATCH_CONTRACT: contract,
        MAX_AMOUNT: "10000"
      }
      for (const [name, lie] of Object.entries(lies)) {
        liar.state.lie = lie
        const outcome = yield* Effect.promise(() =>
          signPrepared(terms, { ...options, facilitator: liar.url, batch }).then(
            () => "signed",
            (error) => error.constructor.name
          )
        )
        assert.deepStrictEqual([name, outcome], [name, "SignatureRefused"])
        if (python === "") continue
        const paid = yield* buyByPython(page, env)
        assert.isString(paid.refused, `${name}: ${JSON.stringify(paid)}`)
      }
      // The seller's own terms are checked against limits before any request.
      const bounds: ReadonlyArray<readonly [object, object]> = [
        [{ batchContract: testnetUsdc }, {}],
        [{ withdrawDelay: 2_592_000 }, {}],
        [{ withdrawDelay: 60 }, {}],
        [{ minDeposit: "2000000" }, {}],
        [{}, { contracts: [] }],
        [{}, { depositMax: 999n }]
      ]
      for (const [extra, limits] of bounds) {
        const asked = { ...terms, extra: { ...terms.extra, ...extra } }
        const outcome = yield* Effect.promise(() =>
          signPrepared(asked, { ...options, facilitator: facilitator.url, batch: { ...batch, ...limits } }).then(
            () => "signed",
            (error) => error.constructor.name
          )
        )
        assert.deepStrictEqual([extra, limits, outcome], [extra, limits, "SignatureRefused"])
      }
      assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 5_000_000n)
      assert.strictEqual(yield* facilitator.balance(thief.publicKey()), 0n)
      if (python !== "") {
        const paid = yield* buyByPython(page, { ...env, FACILITATOR_URL: facilitator.url, TIMES: "3" })
        assert.deepStrictEqual([paid.status, paid.receipt?.success], [200, true], JSON.stringify(paid))
        assert.strictEqual(paid.receipt.extra.channelState.chargedCumulativeAmount, "3000")
        // Its record was lost with its process: its own voucher corrects the next one.
        const next = yield* buyByPython(page, { ...env, FACILITATOR_URL: facilitator.url })
        assert.strictEqual(next.receipt?.extra?.channelState?.chargedCumulativeAmount, "4000", JSON.stringify(next))
      }
      assert.strictEqual(yield* facilitator.balance(receiver), 0n)
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "choices of another form, and deposits that would be refused, are answered with their reason",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const { terms } = yield* sell(facilitator)
      const payer = (yield* facilitator.account(5_000n)).publicKey()
      const ask = (choices: unknown, changes: object = {}) =>
        facilitator.ask("/prepare", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ x402Version: 2, paymentRequirements: { ...terms, ...changes }, payer, choices })
        })
      const reason = (word: string) => `invalid_batch_settlement_stellar_${word}`
      const cases: ReadonlyArray<readonly [unknown, object, number, string]> = [
        ["all", {}, 400, "invalid_request"],
        [[], {}, 400, "invalid_request"],
        [{ amount: 5 }, {}, 422, reason("payload_type")],
        [{ amount: "0" }, {}, 422, reason("deposit_amount")],
        [{ charged: "-1" }, {}, 422, reason("payload_type")],
        [{ salt: "short" }, {}, 422, reason("payload_type")],
        [{ payerAuthorizer: testnetUsdc }, {}, 422, reason("payload_type")],
        [{ charged: "1000", amount: "1000" }, {}, 422, reason("cumulative_exceeds_balance")],
        [{}, { extra: { ...terms.extra, withdrawDelay: 60 } }, 422, reason("withdraw_delay_out_of_range")],
        [{}, { extra: { ...terms.extra, batchContract: testnetUsdc } }, 422, reason("channel_id_mismatch")],
        [{ amount: "6000" }, {}, 422, "payment_would_fail"]
      ]
      for (const [choices, changes, status, error] of cases) {
        const answer = yield* ask(choices, changes)
        assert.deepStrictEqual([choices, answer.status, answer.json.error], [choices, status, error], answer.text)
      }
      const { json } = yield* ask({ amount: "5000" })
      assert.deepStrictEqual(
        [json.payload.type, json.payload.voucher.signature, json.payload.deposit.authorization.transaction],
        ["deposit", "", json.transaction]
      )
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "three lost answers stop a channel, and its request is not paid twice",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const { page, server } = yield* sell(facilitator)
      const contract = yield* contractOf(facilitator)
      const buyer = yield* facilitator.account(500_000n)
      let cuts = 0
      let sent: Array<string> = []
      const between = createServer(async (request, response) => {
        const header = request.headers["payment-signature"]
        if (typeof header === "string") sent.push(header)
        const given = await fetch(page, typeof header === "string" ? { headers: { "payment-signature": header } } : {})
        // Cut within its body: Deno sends a request again by itself if its answer does not begin.
        if (header !== undefined && cuts-- > 0)
          return void response
            .writeHead(200, { "content-length": "1000" })
            .write("a part", () => setTimeout(() => request.socket.destroy(), 100))
        response.writeHead(given.status, Object.fromEntries(given.headers)).end(Buffer.from(await given.arrayBuffer()))
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => (between.closeAllConnections(), between.close())))
      const url = `http://127.0.0.1:${(between.address() as { port: number }).port}`
      const batch = { contracts: [contract], depositTimes: 5, channels: new Map() }
      const shared = { facilitator: facilitator.url, rpcUrl: facilitator.ledgerUrl, batch }
      const options = { secret: buyer.secret(), maxAmount: 10_000n, ...shared }
      const buy = (path: string) =>
        Effect.promise(() =>
          pay(url + path, options).then(
            ({ response }) => response.status,
            (error) => `${error.constructor.name} ${error.message}`
          )
        )
      const charged = Effect.promise(() => server.channels.list().then(([one]) => one!.chargedCumulativeAmount))
      assert.strictEqual(yield* buy("/first"), 200)
      cuts = 3
      sent = []
      assert.match(String(yield* buy("/second")), /^PaymentUnknown/)
      assert.match(String(yield* buy("/third")), /^SignatureRefused 3 answers .* 1000 charged .* at most 2000/)
      // The same voucher again, which this seller does not sell for twice: no second one is signed for that request.
      assert.strictEqual(yield* buy("/second"), 402)
      assert.strictEqual(yield* buy("/second"), 402)
      assert.deepStrictEqual([new Set(sent).size, yield* charged], [1, "2000"])
      assert.strictEqual(yield* buy("/third"), 200)
      assert.strictEqual(yield* charged, "3000")
      assert.strictEqual(yield* facilitator.balance(buyer.publicKey()), 495_000n)
    }).pipe(Effect.scoped),
  240_000
)
