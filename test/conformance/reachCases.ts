// Any language, any framework: each buyer buys from each seller by `exact` and, if the buyer supports it, by `upto`.
// The first settle is answered as pending, and one answer is lost and requested again. Each cell is checked to the atom
// on both sides, by the ledger, and is in the table of `languages.md`.
import assert from "node:assert/strict"
import { execFile, execFileSync } from "node:child_process"
import { mkdtempSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { Keypair } from "@stellar/stellar-sdk"
import { buy } from "../../examples/buyer.ts"
import { checkSeller } from "../../examples/checkSeller.ts"
import { pay } from "../../examples/client/prepared.mjs"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"
import type { Part } from "./report.ts"
import { reachBatch } from "./reachBatch.ts"
import { reachMpp } from "./reachMpp.ts"
import { reachPacked } from "./reachPacked.ts"
import { pythonProgram, type ReachSeller, reporters, startSellers, weatherPrice, wordPrice } from "./reachSellers.ts"
import { checkTable } from "./reachTable.ts"
import { root, type World } from "./world.ts"

interface Bought {
  readonly status: number
  readonly page: any
  readonly receipt: any
}

interface ReachBuyer {
  readonly name: string
  readonly schemes: ReadonlyArray<"exact" | "upto">
  readonly account: string
  readonly buy: (url: string) => Promise<Bought>
}

/**
 * A proxy between the sellers and the facilitator: it answers the first settle of each payment as pending, and keeps
 * it.
 */
const startPending = async (target: string) => {
  const payments = new Map<string, any>()
  const server = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk) => (text += chunk))
    request.on("end", async () => {
      const answer = (status: number, body: string) =>
        response.writeHead(status, { "content-type": "application/json" }).end(body)
      const payment = request.url === "/settle" ? JSON.parse(text).paymentPayload : undefined
      const { network, resource } = { network: payment?.accepted.network, resource: payment?.resource?.url }
      if (payment !== undefined && !payments.has(resource)) {
        payments.set(resource, payment)
        const pending = { success: false, errorReason: "settlement_pending", transaction: "", network }
        return answer(200, JSON.stringify(pending))
      }
      const given = await fetch(`${target}${request.url}`, {
        method: request.method ?? "GET",
        ...(request.method === "POST" ? { headers: { "content-type": "application/json" }, body: text } : {})
      })
      answer(given.status, await given.text())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    /** The payment that bought a page. */
    paymentFor: (url: string) => payments.get(url),
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}

/** The buyers that can run here, each with its own account. */
const makeBuyers = async (world: World, uptoContract: string): Promise<ReadonlyArray<ReachBuyer>> => {
  const accounts = await Promise.all(Array.from({ length: 3 }, () => world.account(10)))
  const [light, sdk, forPython] = accounts as [Keypair, Keypair, Keypair]
  const shared = { maxAmount: 1_000_000n, network: "stellar:testnet", rpcUrl: world.ledger }
  const key = join(mkdtempSync(join(tmpdir(), "tollkeeper-reach-")), "buyer.pem")
  const script = join(root, "examples/curl/pay.sh")
  execFileSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", key])
  const account = execFileSync("bash", [script, "--account", key]).toString().trim()
  await askFriendbot(world.ledger, account, 10)
  const env = { ...process.env, FACILITATOR_URL: world.facilitator, LEDGER_RPC_URL: world.ledger }
  const run = (program: string, words: ReadonlyArray<string>, more: Record<string, string>) =>
    promisify(execFile)(program, [...words], { env: { ...env, ...more } })
  const read = async (response: Response, receipt: any): Promise<Bought> => ({
    status: response.status,
    page: await response.json(),
    receipt
  })
  return [
    {
      name: "Node, /prepare",
      schemes: ["exact", "upto"],
      account: light.publicKey(),
      buy: async (url) => {
        const options = {
          ...shared,
          secret: light.secret(),
          facilitator: world.facilitator,
          uptoContracts: [uptoContract]
        }
        const { receipt, response } = await pay(url, options)
        return read(response, receipt)
      }
    },
    {
      name: "Node, SDK",
      schemes: ["exact", "upto"],
      account: sdk.publicKey(),
      buy: async (url) => {
        const { receipt, response } = await buy(url, { ...shared, secret: sdk.secret() })
        return read(response, receipt)
      }
    },
    {
      name: "curl",
      schemes: ["exact"],
      account,
      buy: async (url) => {
        const { stdout } = await run("bash", [script, url], { BUYER_KEY: key })
        const [page = "", receipt = "{}"] = stdout.trim().split("\n")
        return { status: Number(page.slice(0, 3)), page: JSON.parse(page.slice(4)), receipt: JSON.parse(receipt) }
      }
    },
    ...(pythonProgram === undefined
      ? []
      : [
          {
            name: "Python",
            schemes: ["exact", "upto"] as const,
            account: forPython.publicKey(),
            buy: async (url: string) => {
              const secrets = { BUYER_SECRET: forPython.secret(), UPTO_CONTRACT: uptoContract }
              const { stdout } = await run(pythonProgram!, [join(root, "examples/python/buy.py"), url], secrets)
              return JSON.parse(stdout) as Bought
            }
          }
        ])
  ]
}

const words = 4
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64")

type Way = Awaited<ReturnType<typeof startPending>>

/** One cell: bought, paid to the atom, and the same answer for the same payment. Returns the cost. */
const buyOnce = async (world: World, way: Way, buyer: ReachBuyer, seller: ReachSeller, scheme: "exact" | "upto") => {
  const isExact = scheme === "exact"
  const mark = encodeURIComponent(buyer.name)
  const url = `${seller.url}${isExact ? `/weather?city=${mark}` : `/story?words=${words}&by=${mark}`}`
  const price = isExact ? weatherPrice : wordPrice * BigInt(words)
  const before = await world.balance(buyer.account)
  const bought = await buyer.buy(url)
  assert.equal(bought.status, 200, JSON.stringify(bought))
  assert.equal(bought.receipt?.success, true, JSON.stringify(bought.receipt))
  if (isExact) assert.equal(bought.page.city, buyer.name)
  else assert.equal(bought.page.story.split(" ").length, words)
  assert.equal(before - (await world.balance(buyer.account)), price)
  // The answer was lost: the same payment gets the same page and receipt again, and costs nothing more.
  const payment = way.paymentFor(url)
  assert.ok(payment, "no first settle was answered as pending")
  const again = await fetch(url, { headers: { "payment-signature": encode(payment) } })
  assert.deepEqual([again.status, await again.json()], [200, bought.page])
  const header = again.headers.get("payment-response") ?? ""
  assert.equal(JSON.parse(Buffer.from(header, "base64").toString()).transaction, bought.receipt.transaction)
  assert.equal(before - (await world.balance(buyer.account)), price)
  return price
}

/** Every buyer at every seller. */
export const reachCases = async (world: World, part: Part, say: (line: string) => void): Promise<void> => {
  const supported: any = await (await fetch(`${world.facilitator}/supported`)).json()
  const kind = supported.kinds.find((one: any) => one.scheme === "upto" && one.network === "stellar:testnet")
  const payTo = (await world.account(0)).publicKey()
  const way = await startPending(world.facilitator)
  const sellers = await startSellers({ facilitator: way.url, payTo, uptoExtra: kind.extra }, say)
  const cells = new Map<string, ReadonlyArray<string>>()
  const bodies = new Map<string, string>()
  const checked = new Map<string, string>()
  let total = 0n
  try {
    const buyers = await makeBuyers(world, kind.extra.uptoContract)
    await Promise.all(
      buyers.map(async (buyer) => {
        for (const seller of sellers)
          for (const scheme of buyer.schemes.filter((one) => seller.schemes?.includes(one) !== false))
            await part.check(`${buyer.name} buys from ${seller.name} by ${scheme}`, async () => {
              const price = await buyOnce(world, way, buyer, seller, scheme)
              total += price
              const cell = `${buyer.name}/${seller.name}`
              cells.set(cell, [...(cells.get(cell) ?? []), scheme])
            })
      })
    )
    for (const { name, url } of sellers.filter((one) => reporters.includes(one.name)))
      await part.check(`${name} gives the body of a POST to its page`, async () => {
        const body = JSON.stringify({ company: "Acme" })
        const answer = await fetch(`${url}/report`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body
        })
        assert.deepEqual([answer.status, await answer.json()], [200, { asked: { company: "Acme" } }])
        bodies.set(name, "given")
      })
    await part.check("the seller has what the buyers have paid, to the atom", async () =>
      assert.equal(await world.balance(payTo), total)
    )
    for (const { name, url } of sellers)
      await part.check(`${name} passes check-seller`, async () => {
        const secret = (await world.account(10)).secret()
        const buyer = { secret, facilitator: world.facilitator, maxAmount: weatherPrice, rpcUrl: world.ledger }
        const notes = await checkSeller({ url: `${url}/weather?city=checked`, buyer })
        assert.deepEqual(
          notes.filter(({ result }) => result === "mend" || result === "skipped"),
          []
        )
        checked.set(name, "passes")
      })
    await reachBatch(world, part, payTo)
    await reachMpp(world, part, say)
    await reachPacked(world, part, say)
    const head = ["seller", ...buyers.map(({ name }) => name), "body of a `POST`", "`check-seller`"]
    const rows = sellers.map(({ name }) => {
      const bought = buyers.map((buyer) => cells.get(`${buyer.name}/${name}`)?.join(", ") ?? "")
      return [name, ...bought, bodies.get(name) ?? "", checked.get(name) ?? ""] as const
    })
    await part.check("the table in languages.md shows this run", () => checkTable(head, rows))
    say(`  each first settle was pending, each answer asked for twice; the seller was paid ${total} atoms in all`)
  } finally {
    await Promise.all(sellers.map(({ stop }) => stop()))
    way.stop()
  }
}
