// The buyer of bash, curl and openssl: it pays to the atom, and refuses a facilitator that asks for another signature.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile, execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { startSeller } from "../../examples/seller-http.ts"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { startFacilitator } from "../support/facilitator.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

const hasTools = ["bash", "curl", "openssl", "base32"].every((one) => spawnSync(one, ["--version"]).error === undefined)
if (!hasTools) console.log("left out: bash, curl, openssl and base32 are not all here")
const script = join(root, "examples", "curl", "pay.sh")

it.live.runIf(hasTools)(
  "curl and openssl pay to the atom, and refuse every lie of a facilitator",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 5_000, closesOnSubmit: true })
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const thief = (yield* facilitator.account(0n)).publicKey()
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-curl-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const key = join(folder, "buyer.pem")
      execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", key])
      const account = execFileSync("bash", [script, "--account", key]).toString().trim()
      yield* Effect.promise(() => askFriendbot(facilitator.ledgerUrl, account, 1))
      const seller = yield* Effect.acquireRelease(
        Effect.promise(() =>
          startSeller({
            facilitator: facilitator.url,
            payTo,
            asset: testnetUsdc,
            amount: "12345",
            network: "stellar:testnet",
            maxTimeoutSeconds: 180
          })
        ),
        (started) => Effect.promise(() => started.close())
      )
      const pay = (url: string, env = {}) =>
        Effect.promise(() =>
          promisify(execFile)("bash", [script, `${seller.url}/weather?city=Oslo`], {
            env: { ...process.env, BUYER_KEY: key, FACILITATOR_URL: url, LEDGER_RPC_URL: facilitator.ledgerUrl, ...env }
          }).then(
            ({ stdout }) => stdout,
            (error) => String(error.stderr || error.stdout)
          )
        )
      const native = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
      const { kinds } = (yield* facilitator.ask("/supported")).json
      const { extra } = kinds.find((one: any) => one.scheme === "upto" && one.network === "stellar:testnet")
      const lies: Record<string, (terms: any) => any> = {
        recipient: (terms) => ({ ...terms, payTo: thief }),
        amount: (terms) => ({ ...terms, amount: "12346" }),
        contract: (terms) => ({ ...terms, asset: native }),
        "nested call": (terms) => ({ ...terms, scheme: "upto", extra }),
        "far expiry": (terms) => ({ ...terms, maxTimeoutSeconds: 300 })
      }
      let lie = (terms: any) => terms
      const liar = createServer((request, response) => {
        let text = ""
        request.on("data", (chunk) => (text += chunk))
        request.on("end", async () => {
          const body = JSON.parse(text)
          const answer = await fetch(`${facilitator.url}/prepare`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ ...body, paymentRequirements: lie(body.paymentRequirements) })
          })
          response.writeHead(answer.status).end(await answer.text())
        })
      })
      yield* Effect.promise(() => new Promise<void>((resolve) => liar.listen(0, "127.0.0.1", resolve)))
      yield* Effect.addFinalizer(() => Effect.sync(() => liar.close()))
      const url = `http://127.0.0.1:${(liar.address() as { port: number }).port}`
      for (const [name, change] of Object.entries(lies)) {
        lie = change
        expect([name, yield* pay(url)]).toEqual([
          name,
          expect.stringMatching(/^refused: the (facilitator asks|signature would)/)
        ])
      }
      expect(yield* pay(url, { MAX_AMOUNT: "12344" })).toContain("the price is above the limit")
      expect(yield* facilitator.balance(payTo)).toBe(0n)
      const paid = yield* pay(facilitator.url)
      expect(paid).toContain('200 {"city":"Oslo"')
      expect(paid).toContain('"success":true')
      expect([yield* facilitator.balance(payTo), yield* facilitator.balance(account)]).toEqual([12_345n, 9_987_655n])
    }).pipe(Effect.scoped),
  240_000
)

/** Answers every path as configured: a seller, its facilitator and a ledger RPC in one. */
const answering = (answers: Record<string, () => { readonly terms?: unknown; readonly json?: unknown }>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => {
        const { json, terms } = answers[request.url ?? ""]?.() ?? {}
        const header = Buffer.from(JSON.stringify(terms ?? {})).toString("base64")
        request
          .resume()
          .on("end", () =>
            terms === undefined
              ? response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(json ?? {}))
              : response.writeHead(402, { "payment-required": header }).end("{}")
          )
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { server, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

it.live.runIf(hasTools)(
  "nothing that a seller, a facilitator or a ledger answers runs as a command of the buyer",
  () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "tollkeeper-curl-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const key = join(folder, "buyer.pem")
      execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", key])
      const mark = join(folder, "ran")
      const command = `BASH_VERSINFO[$(touch ${mark})0]`
      const honest = {
        scheme: "exact",
        network: "stellar:testnet",
        amount: "1",
        asset: testnetUsdc,
        payTo: "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF",
        maxTimeoutSeconds: 60
      }
      const prepared = { nonce: "1", transaction: "AAAA", toSign: { hash: "00" } }
      const expires = { ledger: 5, latestLedger: 5 }
      let terms: unknown = honest
      let given: unknown = { ...prepared, expires }
      let sequence: unknown = 5
      const { url } = yield* answering({
        "/page": () => ({ terms: { x402Version: 2, resource: { url: "/page" }, accepts: [terms] } }),
        "/prepare": () => ({ json: given }),
        "/rpc": () => ({ json: { jsonrpc: "2.0", id: 1, result: { sequence } } })
      })
      const pay = (env = {}) =>
        Effect.promise(() =>
          promisify(execFile)("bash", [script, `${url}/page`], {
            env: { ...process.env, BUYER_KEY: key, FACILITATOR_URL: url, ...env }
          }).then(
            ({ stdout }) => stdout,
            (error) => String(error.stderr || error.stdout)
          )
        )
      // Terms that name a member twice are read by the first, whichever object it is in.
      for (const extra of [{ maxTimeoutSeconds: command }, { amount: command }, { payTo: command }]) {
        terms = { extra, ...honest }
        expect(yield* pay()).toMatch(/^refused: the terms have no \w+, or two/)
      }
      terms = { ...honest, maxTimeoutSeconds: command }
      expect(yield* pay()).toMatch(/^refused: /)
      terms = { ...honest, asset: "CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75" }
      expect(yield* pay()).toMatch(/^refused: the asset is not one to pay in/)
      terms = { ...honest, maxTimeoutSeconds: 301 }
      expect(yield* pay()).toMatch(/^refused: the terms' time is not of 1 to 300 seconds/)
      terms = honest
      given = { ...prepared, expires: { ledger: 5, latestLedger: command } }
      expect(yield* pay()).toMatch(/^refused: the facilitator's answer is incomplete/)
      given = { ...prepared, expires: { ledger: command, latestLedger: 5 } }
      expect(yield* pay()).toMatch(/^refused: /)
      given = { ...prepared, expires }
      sequence = command
      expect(yield* pay({ LEDGER_RPC_URL: `${url}/rpc` })).toMatch(/^refused: /)
      sequence = 5
      expect(yield* pay()).toMatch(/^refused: the facilitator asks for another signature/)
      expect(existsSync(mark)).toBe(false)
    }).pipe(Effect.scoped),
  240_000
)
