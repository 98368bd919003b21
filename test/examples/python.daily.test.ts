// The Python package together with Node: its buyer pays sellers of both, Node's buyer pays its seller. A lying
// facilitator is refused in every case; a lost answer is repeated. It uses Debian's python3 with its `cryptography`;
// without them the test prints a message and is skipped.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { execFile, spawn, spawnSync } from "node:child_process"
import { createServer } from "node:http"
import { connect } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { signPayment } from "../../examples/buyer.ts"
import { pay } from "../../examples/client/prepared.mjs"
import { saltOf } from "../../examples/client/preparedBatch.mjs"
import { startSeller } from "../../examples/seller-http.ts"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { contradictions, fittings } from "./answeredTotals.ts"

const python =
  ["/usr/bin/python3", "python3"].find(
    (one) => spawnSync(one, ["-c", "import cryptography, sys; assert sys.version_info >= (3, 10)"]).status === 0
  ) ?? ""
const hasPython = python !== ""
if (!hasPython) console.log("left out: there is no python3 with the package cryptography here")

const folder = join(root, "examples", "python")

const buyByPython = (facilitator: string, secret: string, words: ReadonlyArray<string>, env = {}) =>
  Effect.promise(() =>
    promisify(execFile)(python, [join(folder, "buy.py"), ...words], {
      env: { ...process.env, BUYER_SECRET: secret, FACILITATOR_URL: facilitator, ...env }
    }).then(
      ({ stdout }) => JSON.parse(stdout) as any,
      ({ stderr, stdout }) => JSON.parse(stdout === "" ? JSON.stringify({ stderr }) : stdout) as any
    )
  )

/** The WSGI seller as a separate process; ends with the Scope. */
const sellByPython = (facilitator: string, payTo: string, env = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(python, [join(folder, "sell.py")], {
        env: { ...process.env, PAY_TO: payTo, FACILITATOR_URL: facilitator, MAX_TIMEOUT: "300", ...env },
        stdio: ["ignore", "pipe", "inherit"]
      })
      const line: string = await new Promise((resolve, reject) => {
        child.stdout.once("data", (data) => resolve(String(data)))
        child.once("exit", (code) => reject(new Error(`the seller ended with ${code}`)))
      })
      return { child, url: /http:\/\/[\d.:]+/.exec(line)![0] }
    }),
    ({ child }) => Effect.sync(() => child.kill())
  )

const totals = `
import json, sys
from types import SimpleNamespace
from tollkeeper_x402.batch import Batch, Known
channel, answers = SimpleNamespace(id=bytes.fromhex("ab"), config={}, voucher=lambda key, most: most), []
for extra in json.load(sys.stdin):
    batch = Batch(contracts=(), channels={"ab": Known(charged=300, balance=1000)})
    pay = lambda: batch.payload({"amount": "100"}, channel, None, 100, None)["voucher"]
    voucher = {"maxClaimableAmount": str(pay())}
    batch.note_charged(channel, {"amount": "100"}, {"type": "voucher", "voucher": voucher}, {"extra": extra})
    try:
        answers.append(str(pay()))
    except Exception as error:
        answers.append(str(error))
    known = batch.channels["ab"]
    assert not known.disputed or (known.charged, known.balance, known.signed) == (300, 1000, 400)
print(json.dumps(answers))
`

it.runIf(hasPython)("Python's buyer stops where a seller's answer contradicts the voucher", () => {
  const input = JSON.stringify([...fittings, ...contradictions].map(([extra]) => extra))
  const { stderr, stdout } = spawnSync(python, ["-c", totals], { cwd: folder, input, encoding: "utf8" })
  const answers: Array<string> = JSON.parse(stdout || JSON.stringify([stderr]))
  expect(answers.slice(0, fittings.length)).toEqual(fittings.map(([, total]) => String(total + 100n)))
  expect(answers.length).toBe(fittings.length + contradictions.length)
  for (const [at, [, why]] of contradictions.entries()) expect(answers[fittings.length + at]).toMatch(why)
})

const correction = `
import json
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tollkeeper_x402.batch import Batch, Channel
from tollkeeper_x402.layout import ACCOUNT, CONTRACT, strkey_text
key, account, contract = Ed25519PrivateKey.generate(), strkey_text(ACCOUNT, bytes(32)), strkey_text(CONTRACT, bytes(32))
config = dict.fromkeys(("payer", "payerAuthorizer", "receiver", "receiverAuthorizer"), account)
config |= {"token": contract, "withdrawDelay": 900, "salt": "00" * 32}
channel = Channel(config, contract, bytes(32))
signature = channel.voucher(key, 40)["signature"]
def takes(charged, most, sent, before):
    state = {"channelId": channel.id.hex(), "balance": "100", "chargedCumulativeAmount": str(charged)}
    extra = {"channelState": state, "voucherState": {"signedMaxClaimable": str(most), "signature": signature}}
    return Batch().note_corrected(channel, {"accepts": [{"extra": extra}]}, key, sent, before)
print(json.dumps([takes(40, 40, 50, 40), takes(40, 40, 40, 30), takes(90, (1 << 128) + 40, 40, 30)]))
`

it.runIf(hasPython)("Python's buyer takes no total above the ledger's largest amount", () => {
  const { stderr, stdout } = spawnSync(python, ["-c", correction], { cwd: folder, encoding: "utf8" })
  expect([stdout.trim(), stderr]).toEqual(["[true, false, false]", ""])
})

const salts = `
from tollkeeper_x402.batch import salt_of
from tollkeeper_x402.buyer import Buyer
from tollkeeper_x402.kept import Request
buyer = Buyer(secret="SECRET", max_amount=1)
print([buyer._salt(Request("GET", url)) == salt_of(origin) for url, origin in (
    ("https://shop.example/a?b=1", "https://shop.example"), ("HTTPS://Shop.example/c", "https://shop.example"),
    ("https://other.example/a", "https://shop.example"))], salt_of("https://shop.example"))
`

it.runIf(hasPython)("Python's buyer has a channel for each origin", () => {
  const { stderr, stdout } = spawnSync(python, ["-c", salts.replace("SECRET", Keypair.random().secret())], {
    cwd: folder,
    encoding: "utf8"
  })
  expect([stdout.trim(), stderr]).toEqual([`[True, True, False] ${saltOf("https://shop.example")}`, ""])
})

const start = startFacilitator({ closeMillis: 1_000 })

const contractOf = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.ask("/supported"),
    ({ json }) => json.kinds.find((one: any) => one.scheme === "upto").extra.uptoContract as string
  )

it.live.runIf(hasPython)(
  "Python pays Node, Node pays Python, Python pays Python, to the atom, and a lost answer is given again",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const buyer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const before = yield* facilitator.balance(buyer.publicKey())
      const uptoContract = yield* contractOf(facilitator)
      const node = yield* Effect.acquireRelease(
        Effect.promise(() =>
          startSeller({
            facilitator: facilitator.url,
            payTo,
            asset: testnetUsdc,
            amount: "10000",
            network: "stellar:testnet",
            maxTimeoutSeconds: 300
          })
        ),
        (seller) => Effect.promise(() => seller.close())
      )
      const env = { UPTO_CONTRACT: uptoContract, LEDGER_RPC_URL: facilitator.ledgerUrl }
      const buy = (words: ReadonlyArray<string>) => buyByPython(facilitator.url, buyer.secret(), words, env)

      const first = yield* buy([`${node.url}/weather?city=Oslo`])
      expect(first, JSON.stringify(first)).toMatchObject({
        status: 200,
        page: { city: "Oslo" },
        receipt: { success: true }
      })

      const sold = yield* sellByPython(facilitator.url, payTo)
      const second = yield* buy([`${sold.url}/weather?city=Oslo`])
      expect(second).toMatchObject({ status: 200, page: { city: "Oslo", made: 1 }, receipt: { success: true } })
      // The answer was lost: the same payment has the same page and receipt, and the work is not done again.
      const again = yield* buy([`${sold.url}/weather?city=Oslo`, second.payment])
      expect(again).toMatchObject({ status: 200, page: second.page, receipt: second.receipt })
      // It releases nothing else.
      expect((yield* buy([`${sold.url}/weather?city=Rome`, second.payment])).status).toBe(409)

      const third = yield* buy([`${sold.url}/story?words=4`])
      expect(third, JSON.stringify(third)).toMatchObject({ status: 200, receipt: { success: true, amount: "4000" } })

      const options = {
        secret: buyer.secret(),
        facilitator: facilitator.url,
        maxAmount: 1_000_000n,
        rpcUrl: facilitator.ledgerUrl,
        uptoContracts: [uptoContract]
      }
      const fourth = yield* Effect.promise(() => pay(`${sold.url}/weather`, options))
      expect([fourth.response.status, fourth.receipt?.success]).toEqual([200, true])
      const fifth = yield* Effect.promise(() => pay(`${sold.url}/story?words=2`, options))
      expect([fifth.response.status, fifth.receipt?.amount]).toEqual([200, "2000"])

      expect(yield* facilitator.balance(payTo)).toBe(36_000n)
      expect(before - (yield* facilitator.balance(buyer.publicKey()))).toBe(36_000n)
    }).pipe(Effect.scoped),
  240_000
)

const report = `
import json, os, sys
from wsgiref.simple_server import make_server
from tollkeeper_x402 import Seller, Work, wsgi
seller = Seller(pay_to=os.environ["PAY_TO"], asset=os.environ["ASSET"], amount="10000",
                facilitator=os.environ["FACILITATOR_URL"], max_timeout_seconds=300)
sells = wsgi(seller, "/report", lambda asked: Work({"asked": asked["wsgi.input"].read().decode()}), "POST")
with make_server("127.0.0.1", 0, sells) as server:
    print(f"http://127.0.0.1:{server.server_port}/report", flush=True)
    server.serve_forever()
`

/** Sends bytes over a connection and ends them there; the answer as text. */
const sendRaw = (url: string, text: string) =>
  new Promise<string>((resolve, reject) => {
    let answer = ""
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), allowHalfOpen: true })
    socket.on("data", (data) => (answer += data)).on("error", reject)
    socket.on("end", () => resolve(answer))
    socket.end(text)
  })

it.live.runIf(hasPython)(
  "Python's seller sells no part of a request's body",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const buyer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const env = { ...process.env, PAY_TO: payTo, ASSET: testnetUsdc, FACILITATOR_URL: facilitator.url }
      const url = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const child = spawn(python, ["-c", report], { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] })
          const line: string = await new Promise((resolve) =>
            child.stdout.once("data", (data) => resolve(String(data)))
          )
          return { child, url: line.trim() }
        }),
        ({ child }) => Effect.sync(() => child.kill())
      ).pipe(Effect.map((started) => started.url))
      const asked: any = yield* Effect.promise(() => fetch(url, { method: "POST" }).then((answer) => answer.json()))
      const [accepted] = asked.accepts
      const options = { secret: buyer.secret(), rpcUrl: facilitator.ledgerUrl, maxAmount: 10_000n }
      const transaction = yield* Effect.promise(() => signPayment(accepted, { ...options, network: "stellar:testnet" }))
      const payment = { x402Version: 2, payload: { transaction }, resource: asked.resource, accepted }
      const header = Buffer.from(JSON.stringify(payment)).toString("base64")
      const head = `POST /report HTTP/1.1\r\nhost: ${new URL(url).host}\r\npayment-signature: ${header}\r\n`
      const body = "all that is asked"
      const statusOf = (answer: string) => Number(/^HTTP\/1.\d (\d+)/.exec(answer)?.[1])
      const raw = (rest: string) => Effect.promise(() => sendRaw(url, `${head}${rest}`))
      const framed = `content-length: ${body.length}\r\n\r\n`
      const cut = yield* raw(`${framed}${body.slice(0, 4)}`)
      expect(statusOf(cut)).toBe(400)
      for (const length of ["-1", "x", "\u00b2"])
        expect(statusOf(yield* raw(`content-length: ${length}\r\n\r\n`))).toBe(400)
      const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
      expect(statusOf(yield* raw(`transfer-encoding: chunked\r\n\r\n${chunks}`))).toBe(411)
      for (const length of [9_000_000, "9".repeat(5_000)])
        expect(statusOf(yield* raw(`content-length: ${length}\r\n\r\n`))).toBe(413)
      expect(yield* facilitator.balance(payTo)).toBe(0n)
      // The whole request still gets its page.
      const paid = yield* raw(`${framed}${body}`)
      expect([statusOf(paid), paid.endsWith(JSON.stringify({ asked: body }).replace(":", ": "))]).toEqual([200, true])
      expect(yield* facilitator.balance(payTo)).toBe(10_000n)
    }).pipe(Effect.scoped),
  120_000
)

it.live.runIf(hasPython)(
  "the Python buyer refuses every lie of a facilitator before it signs",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* start
      const buyer = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const thief = (yield* facilitator.account(0n)).publicKey()
      const native = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
      const sold = yield* sellByPython(facilitator.url, payTo, { MAX_TIMEOUT: "60" })
      const upto = (yield* Effect.promise(() => fetch(`${sold.url}/story`).then((answer) => answer.json()))) as any
      const lies: Record<string, (terms: any) => any> = {
        recipient: (terms) => ({ ...terms, payTo: thief }),
        amount: (terms) => ({ ...terms, amount: "10001" }),
        contract: (terms) => ({ ...terms, asset: native }),
        "nested call": () => upto.accepts[0],
        "far expiry": (terms) => ({ ...terms, maxTimeoutSeconds: 300 })
      }
      let lie = (terms: any) => terms
      let asked = 0
      const liar = createServer((request, response) => {
        let text = ""
        request.on("data", (chunk) => (text += chunk))
        request.on("end", async () => {
          asked += 1
          const body = JSON.parse(text)
          const answer = await fetch(`${facilitator.url}/prepare`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ ...body, paymentRequirements: lie(body.paymentRequirements) })
          })
          response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text())
        })
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => liar.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => liar.close()))
      const url = `http://127.0.0.1:${(liar.address() as { port: number }).port}`
      for (const [name, change] of Object.entries(lies)) {
        lie = change
        const paid = yield* buyByPython(url, buyer.secret(), [`${sold.url}/weather`])
        expect([name, paid.refused !== undefined], JSON.stringify(paid)).toEqual([name, true])
      }
      expect(asked).toBe(Object.keys(lies).length)
      // Above its own limit it does not even ask.
      const dear = yield* buyByPython(url, buyer.secret(), [`${sold.url}/weather`], { MAX_AMOUNT: "9999" })
      expect([dear.refused, asked]).toEqual(["the price is above the limit", Object.keys(lies).length])
      expect(yield* facilitator.balance(payTo)).toBe(0n)
      expect(yield* facilitator.balance(thief)).toBe(0n)
    }).pipe(Effect.scoped),
  240_000
)
