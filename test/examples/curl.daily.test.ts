// The buyer of bash, curl and openssl: it pays to the atom, and refuses a facilitator that asks for another signature.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile, execFileSync, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { startSeller } from "../../examples/seller-http.ts"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../support/buyer.ts"
import { startFacilitator } from "../support/facilitator.ts"
import { askFriendbot } from "../support/rpcCall.ts"

const hasTools = ["bash", "curl", "openssl", "base32"].every((one) => spawnSync(one, ["--version"]).error === undefined)
if (!hasTools) console.log("left out: bash, curl, openssl and base32 are not all here")
const script = join(root, "examples", "curl", "pay.sh")

it.live.runIf(hasTools)(
  "curl and openssl pay to the atom, and refuse every lie of a facilitator",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 1_000, set: ["prepare.per_second=0"] })
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
            maxTimeoutSeconds: 60
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
