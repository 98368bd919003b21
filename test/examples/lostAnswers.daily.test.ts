// A buyer with a lost answer: it stores the payment before sending it, reports this, and the next identical call sends
// the same payment. JavaScript, Python and bash at one seller, behind a connection that cuts answers; one transfer
// each.
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startSeller } from "../../examples/seller-http.ts"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

const price = 12_345n
const python =
  ["/usr/bin/python3", "python3"].find(
    (one) => spawnSync(one, ["-c", "import cryptography, sys; assert sys.version_info >= (3, 10)"]).status === 0
  ) ?? ""
const hasCurl = ["bash", "curl", "openssl", "base32"].every((one) => spawnSync(one, ["--version"]).error === undefined)

interface Answered {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string | Uint8Array
  /** The connection ends after as many bytes of the whole answer. */
  readonly cutAt?: number
}

/** Between buyer and seller: `state.cut` loses answers to payments, `state.answer` replaces them. */
const startBetween = (target: () => string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const state = {
        cut: 0,
        answer: undefined as ((payment: any) => Promise<Answered> | Answered) | undefined,
        payments: [] as Array<string>,
        asked: [] as Array<string>
      }
      // A failed assertion of an answer reaches the buyer, which otherwise waits until the test's limit.
      const answerOf = async (header: unknown) =>
        state.answer?.(typeof header === "string" ? JSON.parse(Buffer.from(header, "base64").toString()) : undefined)
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk) => chunks.push(chunk))
        request.on("end", async () => {
          const header = request.headers["payment-signature"]
          const body = Buffer.concat(chunks)
          state.asked.push(`${request.method} ${request.url} ${request.headers["x-mark"] ?? ""} ${body}`)
          if (typeof header === "string") state.payments.push(header)
          const own = await answerOf(header).catch((error: unknown): Answered => ({
            status: 500,
            headers: {},
            body: String(error)
          }))
          if (own?.cutAt !== undefined) {
            const lines = Object.entries({ ...own.headers, "content-length": String(own.body.length) })
            const head = `HTTP/1.1 ${own.status} -\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n`
            const whole = Buffer.concat([Buffer.from(head), Buffer.from(own.body)])
            return void request.socket.end(whole.subarray(0, own.cutAt < 0 ? whole.length + own.cutAt : own.cutAt))
          }
          if (own !== undefined) return void response.writeHead(own.status, own.headers).end(own.body)
          const given = await fetch(target() + request.url, {
            headers: header === undefined ? {} : { "payment-signature": String(header) }
          })
          const bytes = Buffer.from(await given.arrayBuffer())
          if (header !== undefined && state.cut-- > 0) return void request.socket.destroy()
          response.writeHead(given.status, Object.fromEntries(given.headers)).end(bytes)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
      return { state, url, server }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

interface Ended {
  readonly code: number
  readonly out: string
}

interface Buyer {
  readonly name: string
  readonly account: string
  readonly folder: string
  readonly buy: (words: ReadonlyArray<string>) => Promise<Ended>
}

const makeBuyers = Effect.fnUntraced(function* (facilitator: Facilitator) {
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-lost-"))
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
  const run = (program: string, file: string, env: Record<string, string>) => (words: ReadonlyArray<string>) =>
    new Promise<Ended>((resolve) => {
      const shared = { FACILITATOR_URL: facilitator.url, LEDGER_RPC_URL: facilitator.ledgerUrl }
      const given = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...shared, ...env }
      execFile(program, [join(root, file), ...words], { env: given }, (error, stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), out: `${stdout}${stderr}` })
      )
    })
  const [node, snake] = [yield* facilitator.account(), yield* facilitator.account()]
  const buyers: Array<Buyer> = []
  const add = (name: string, account: string, program: string, file: string, env: Record<string, string>) => {
    const own = join(folder, name)
    buyers.push({ name, account, folder: own, buy: run(program, file, { PAYMENTS: own, ...env }) })
  }
  add("node", node.publicKey(), process.execPath, "examples/client/prepared.mjs", { BUYER_SECRET: node.secret() })
  if (python !== "")
    add("python", snake.publicKey(), python, "examples/python/buy.py", { BUYER_SECRET: snake.secret() })
  if (hasCurl) {
    const key = join(folder, "buyer.pem")
    spawnSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", key])
    const script = join(root, "examples/curl/pay.sh")
    const account = spawnSync("bash", [script, "--account", key]).stdout.toString().trim()
    yield* Effect.promise(() => askFriendbot(facilitator.ledgerUrl, account, 1))
    add("curl", account, "bash", "examples/curl/pay.sh", { BUYER_KEY: key })
  }
  return buyers
})

const startWorld = Effect.gen(function* () {
  const facilitator = yield* startFacilitator({ closeMillis: 5_000, closesOnSubmit: true })
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const terms = {
    payTo,
    asset: testnetUsdc,
    amount: String(price),
    network: "stellar:testnet",
    maxTimeoutSeconds: 300
  }
  const seller = yield* Effect.acquireRelease(
    Effect.promise(() => startSeller({ facilitator: facilitator.url, ...terms })),
    (started) => Effect.promise(() => started.close())
  )
  const between = yield* startBetween(() => seller.url)
  const buyers = yield* makeBuyers(facilitator)
  return { facilitator, payTo, between, buyers, terms: { scheme: "exact", extra: {}, ...terms } }
})

const filesIn = (folder: string) => readdirSync(folder).filter((name) => name.endsWith(".json"))

// Deno's server cannot cut a connection.
it.live.skipIf("Deno" in globalThis)(
  "three cut answers stop each buyer, and the same payment delivers",
  () =>
    Effect.gen(function* () {
      const { between, buyers, facilitator, payTo } = yield* startWorld
      const { state } = between
      for (const { account, buy, folder, name } of buyers) {
        const before = yield* facilitator.balance(account)
        const paid = yield* facilitator.balance(payTo)
        const url = `${between.url}/weather?city=${name}`
        state.cut = 3
        state.payments.length = 0
        const lost = yield* Effect.promise(() => buy([url]))
        assert.notStrictEqual(lost.code, 0, `${name}: ${lost.out}`)
        // It is on disk, and printed, so it survives the process.
        assert.match(lost.out, /may have landed/)
        assert.strictEqual(state.payments.length, 3)
        const [payment] = state.payments
        assert.include(lost.out, payment!)
        const [file] = filesIn(folder)
        assert.strictEqual(JSON.parse(readFileSync(join(folder, file!), "utf8")).payment, payment, name)
        // The next identical call, then nothing is kept.
        const got = yield* Effect.promise(() => buy([url]))
        assert.strictEqual(got.code, 0, `${name}: ${got.out}`)
        assert.include(got.out, name)
        assert.deepStrictEqual([new Set(state.payments).size, filesIn(folder)], [1, []], name)
        assert.strictEqual(before - (yield* facilitator.balance(account)), price)
        assert.strictEqual((yield* facilitator.balance(payTo)) - paid, price)
        // By resume.
        state.cut = 3
        const other = `${between.url}/weather?city=${name}-again`
        const second = yield* Effect.promise(() => buy([other]))
        assert.notStrictEqual(second.code, 0, second.out)
        const kept = join(folder, filesIn(folder)[0]!)
        assert.include(second.out, kept)
        const resumed = yield* Effect.promise(() => buy(["--resume", kept]))
        assert.strictEqual(resumed.code, 0, `${name}: ${resumed.out}`)
        assert.include(resumed.out, `${name}-again`)
        assert.strictEqual(before - (yield* facilitator.balance(account)), 2n * price)
      }
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a refused payment is not signed again while it can land",
  () =>
    Effect.gen(function* () {
      const { between, buyers, terms } = yield* startWorld
      const { state } = between
      const required = { x402Version: 2, error: "no", resource: { url: "/weather" }, accepts: [terms] }
      const header = Buffer.from(JSON.stringify(required)).toString("base64")
      state.answer = () => ({ status: 402, headers: { "payment-required": header }, body: "{}" })
      for (const { buy, folder, name } of buyers) {
        state.payments.length = 0
        for (const _ of [1, 2]) {
          const refused = yield* Effect.promise(() => buy([`${between.url}/weather`]))
          assert.notStrictEqual(refused.code, 0, `${name}: ${refused.out}`)
        }
        assert.deepStrictEqual([state.payments.length, new Set(state.payments).size], [2, 1], name)
        // Once its last ledger has closed, a new one is signed.
        const file = join(folder, filesIn(folder)[0]!)
        const kept = JSON.parse(readFileSync(file, "utf8"))
        assert.isAbove(kept.expires, 1)
        writeFileSync(file, JSON.stringify({ ...kept, expires: 1 }))
        yield* Effect.promise(() => buy([`${between.url}/weather`]))
        assert.deepStrictEqual([state.payments.length, new Set(state.payments).size], [4, 2], name)
      }
    }).pipe(Effect.scoped),
  240_000
)

it.live(
  "a payment that a seller calls used is not replaced",
  () =>
    Effect.gen(function* () {
      const { between, buyers, terms } = yield* startWorld
      const { state } = between
      const required = { x402Version: 2, error: "no", resource: { url: "/weather" }, accepts: [terms] }
      const asks = { status: 402, headers: { "payment-required": encode(required) }, body: "{}" }
      // This seller's record binds the payment to another request; it may have settled.
      const used = { status: 409, headers: {}, body: JSON.stringify({ error: "payment_already_used" }) }
      for (const { buy, folder, name } of buyers) {
        state.payments.length = 0
        state.answer = (payment) => (payment === undefined ? asks : used)
        const first = yield* Effect.promise(() => buy([`${between.url}/weather`]))
        assert.notStrictEqual(first.code, 0, `${name}: ${first.out}`)
        const file = join(folder, filesIn(folder)[0]!)
        const kept = JSON.parse(readFileSync(file, "utf8"))
        writeFileSync(file, JSON.stringify({ ...kept, expires: 1 }))
        const again = yield* Effect.promise(() => buy([`${between.url}/weather`]))
        assert.notStrictEqual(again.code, 0, `${name}: ${again.out}`)
        assert.deepStrictEqual([state.payments.length, new Set(state.payments).size], [2, 1], name)
        // Another conflict says nothing of the payment.
        state.answer = (payment) =>
          payment === undefined ? asks : { ...used, body: JSON.stringify({ error: "edited_by_another" }) }
        yield* Effect.promise(() => buy([`${between.url}/weather`]))
        assert.deepStrictEqual([state.payments.length, new Set(state.payments).size], [4, 2], name)
      }
    }).pipe(Effect.scoped),
  240_000
)

// Linux's device for a full disk: it opens, and takes no bytes.
it.live.skipIf(!existsSync("/dev/full"))(
  "a page that its disk does not take is given again",
  () =>
    Effect.gen(function* () {
      const { between, buyers, terms } = yield* startWorld
      const { state } = between
      const required = { x402Version: 2, error: "pay", resource: { url: "/weather" }, accepts: [terms] }
      const asks = { status: 402, headers: { "payment-required": encode(required) }, body: "{}" }
      const receipt = encode({ success: true, transaction: "a", network: terms.network })
      state.answer = (payment) =>
        payment === undefined ? asks : { status: 200, headers: { "payment-response": receipt }, body: picture }
      for (const { buy, folder, name } of buyers) {
        state.payments.length = 0
        const [full, out] = [`${folder}.full`, `${folder}.out`]
        symlinkSync("/dev/full", full)
        const lost = yield* Effect.promise(() => buy(["--out", full, `${between.url}/weather`]))
        assert.notStrictEqual(lost.code, 0, `${name}: ${lost.out}`)
        assert.match(lost.out, /cannot be written.*payment is kept/, name)
        assert.deepStrictEqual([state.payments.length, filesIn(folder).length], [1, 1], name)
        const got = yield* Effect.promise(() => buy(["--out", out, `${between.url}/weather`]))
        assert.strictEqual(got.code, 0, `${name}: ${got.out}`)
        assert.deepStrictEqual(new Uint8Array(readFileSync(out)), picture, name)
        assert.isTrue(JSON.parse(readFileSync(`${out}.receipt.json`, "utf8")).success, name)
        assert.deepStrictEqual([new Set(state.payments).size, filesIn(folder)], [1, []], name)
      }
    }).pipe(Effect.scoped),
  240_000
)

/** Not text: it contains every byte value. */
const picture = Uint8Array.from({ length: 512 }, (_, at) => at % 256)
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64")
const decode = (text: string) => JSON.parse(Buffer.from(text, "base64").toString())

it.live(
  "each buyer pays every shape of 402, by its method and body, for bytes",
  () =>
    Effect.gen(function* () {
      const { between, buyers, facilitator, terms } = yield* startWorld
      const { state } = between
      const native = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
      const nested = { areFeesSponsored: true, deep: { list: [{ amount: "1" }, {}], text: 'a "}" b' } }
      const resource = { url: "/page", description: 'braces } { and \\ quotes "', mimeType: "image/png" }
      const identifier = { "payment-identifier": { info: { required: true }, schema: { type: "object" } } }
      const shapes: Record<string, (body: any) => Answered> = {
        header: (body) => ({ status: 402, headers: { "payment-required": encode(body) }, body: "{}" }),
        body: (body) => ({ status: 402, headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
        pretty: (body) => ({ status: 402, headers: {}, body: JSON.stringify(body, null, 2) })
      }
      const required = {
        x402Version: 2,
        error: "payment required",
        resource,
        accepts: [
          { ...terms, network: "eip155:8453", asset: "0x00", payTo: "0x00" },
          // A plain limit only applies to the first asset.
          { ...terms, asset: native },
          { ...terms, extra: nested }
        ],
        extensions: identifier
      }
      let shape = shapes["header"]!
      let identifiers: Array<unknown> = []
      state.answer = async (payment) => {
        if (payment === undefined) return shape(required)
        assert.deepStrictEqual([payment.accepted, payment.resource], [{ ...terms, extra: nested }, resource])
        identifiers.push(payment.extensions["payment-identifier"].info.id)
        const { json } = await settle(payment)
        assert.strictEqual(json.success, true, JSON.stringify(json))
        const headers = { "content-type": "image/png", "payment-response": encode(json) }
        return { status: 200, headers, body: picture }
      }
      const settle = (paymentPayload: any): Promise<any> =>
        Effect.runPromise(
          facilitator.settle({ x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted })
        )
      for (const { buy, folder, name } of buyers)
        for (const [kind, make] of Object.entries(shapes)) {
          shape = make
          state.asked.length = 0
          identifiers = []
          const out = join(folder, "..", `${name}-${kind}.png`)
          const words = ["-d", "a body", "-H", "x-mark: mine", "--out", out, `${between.url}/page`]
          const got = yield* Effect.promise(() => buy(kind === "body" ? ["-X", "GET", ...words] : words))
          assert.strictEqual(got.code, 0, `${name} ${kind}: ${got.out}`)
          const method = kind === "body" ? "GET" : "POST"
          assert.deepStrictEqual(new Set(state.asked), new Set([`${method} /page mine a body`]), name)
          assert.deepStrictEqual(new Uint8Array(readFileSync(out)), picture)
          assert.isTrue(JSON.parse(readFileSync(`${out}.receipt.json`, "utf8")).success)
          assert.match(String(identifiers[0]), /^[A-Za-z0-9_-]{16,128}$/)
        }
    }).pipe(Effect.scoped),
  480_000
)

const deep = "[".repeat(20_000) + "]".repeat(20_000)
const deepHeader = Buffer.from("[".repeat(3_000) + "]".repeat(3_000)).toString("base64")
/** A crash, not a message. */
const crash = /Traceback|TypeError|SyntaxError|stopped with exit code|unbound variable/

it.live.skipIf("Deno" in globalThis)(
  "a hostile seller's answer costs no buyer a page or a second payment",
  () =>
    Effect.gen(function* () {
      const { between, buyers, terms } = yield* startWorld
      const { state } = between
      const page = `${between.url}/weather`
      const required = { x402Version: 2, error: "pay", resource: { url: "/weather" }, accepts: [terms] }
      const asks = (body: unknown) => ({ status: 402, headers: { "payment-required": encode(body) }, body: "{}" })
      const { network: _, ...unnamed } = terms
      const unpaid: ReadonlyArray<Answered> = [
        ...[{}, { accepts: null }, { accepts: [null, 5, "x", []] }, { accepts: [{}, unnamed] }].map(asks),
        asks({ ...required, accepts: [{ ...terms, amount: 5, extra: "x" }] }),
        { status: 402, headers: { "payment-required": deepHeader }, body: deep },
        { ...asks(required), cutAt: 40 },
        { ...asks(required), cutAt: -1 }
      ]
      const receipt = { "payment-response": encode({ success: true, transaction: "a", network: terms.network }) }
      const paid: ReadonlyArray<Answered> = [
        { status: 200, headers: { "payment-response": deepHeader }, body: picture },
        { status: 200, headers: { "payment-response": encode([null]) }, body: picture },
        { status: 200, headers: receipt, body: deep }
      ]
      for (const { buy, folder, name } of buyers) {
        const out = join(folder, "..", `${name}.out`)
        state.payments.length = 0
        for (const [index, answer] of unpaid.entries()) {
          state.answer = () => answer
          const refused = yield* Effect.promise(() => buy([page]))
          assert.notStrictEqual(refused.code, 0, `${name} ${index}`)
          assert.notMatch(refused.out, crash, `${name} ${index}`)
        }
        state.answer = () => asks(required)
        const unwritable = yield* Effect.promise(() => buy(["--out", join(folder, "none", "out"), page]))
        assert.notStrictEqual(unwritable.code, 0, name)
        assert.deepStrictEqual(state.payments, [], `${name} pays nothing that it cannot keep`)
        for (const [index, answer] of paid.entries()) {
          state.answer = (payment) => (payment === undefined ? asks(required) : answer)
          const words = index === 2 ? [page] : ["--out", out, page]
          const got = yield* Effect.promise(() => buy(words))
          assert.strictEqual(got.code, 0, `${name} ${index}: ${got.out.slice(0, 2_000)}`)
          if (index === 2) assert.include(got.out, name === "python" ? Buffer.from(deep).toString("base64") : deep)
          else assert.deepStrictEqual(new Uint8Array(readFileSync(out)), picture, `${name} ${index}`)
        }
        // Cut within the status line, the headers, and the body, then whole: one payment, one page.
        const whole = { status: 200, headers: receipt, body: picture }
        state.payments.length = 0
        const cuts = [9, 60, -1]
        state.answer = (payment) => {
          const cutAt = payment === undefined ? undefined : cuts.shift()
          return payment === undefined ? asks(required) : cutAt === undefined ? whole : { ...whole, cutAt }
        }
        const lost = yield* Effect.promise(() => buy(["--out", out, page]))
        assert.notStrictEqual(lost.code, 0, `${name}: ${lost.out}`)
        // Another payment for the same request took the place of the resumed one.
        const [file = ""] = filesIn(folder)
        const kept = JSON.parse(readFileSync(join(folder, file), "utf8"))
        const old = join(folder, "..", `${name}-old.json`)
        writeFileSync(old, JSON.stringify({ ...kept, payment: encode({ ...decode(kept.payment), old: true }) }))
        const resumed = yield* Effect.promise(() => buy(["--resume", old]))
        assert.strictEqual(resumed.code, 0, `${name}: ${resumed.out}`)
        assert.deepStrictEqual(filesIn(folder), [file], `${name} keeps the other payment`)
        const got = yield* Effect.promise(() => buy(["--out", out, page]))
        assert.strictEqual(got.code, 0, `${name}: ${got.out}`)
        assert.deepStrictEqual(new Uint8Array(readFileSync(out)), picture, name)
        assert.deepStrictEqual([new Set(state.payments).size, filesIn(folder)], [2, []], name)
      }
    }).pipe(Effect.scoped),
  600_000
)
