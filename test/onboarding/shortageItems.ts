// An operator's problems when something is missing: a sponsor's XLM, space on the disk, the ledger's RPC, a receiver
// that asks for time, and the trustline of one end of a payment. If settings differ, separate facilitators are started.
import { Keypair } from "@stellar/stellar-sdk"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { startRpcProxy } from "../support/rig/rpcProxy.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"
import type { Item, Outcome, Played } from "./operatorItems.ts"

/** A facilitator that was started and is ready. */
export interface Running {
  readonly said: () => string
  readonly stop: () => Promise<void>
}

export interface Starting extends Played {
  readonly startServing: (
    args: ReadonlyArray<string>,
    environment: Readonly<Record<string, string>>
  ) => Promise<Running>
}

const pauseSeconds = 2
const settleMillisMax = 60_000

/** A webhook receiver that asks for time once, and records the time and content of each message. */
export const startReceiver = async () => {
  const messages: Array<{ readonly id: string; readonly body: string; readonly at: number }> = []
  const server = createServer(async (request, response) => {
    let body = ""
    for await (const chunk of request.setEncoding("utf8")) body += String(chunk)
    messages.push({ id: String(request.headers["webhook-id"]), body, at: performance.now() })
    const isFirst = messages.length === 1
    response.writeHead(isFirst ? 503 : 204, isFirst ? { "retry-after": String(pauseSeconds) } : {}).end()
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  /** How its first message came again, once it has arrived. */
  const again = async (): Promise<Outcome> => {
    const until = performance.now() + settleMillisMax
    while (performance.now() < until) {
      const [first] = messages
      const second = messages.slice(1).find(({ id }) => id === first?.id)
      if (first !== undefined && second !== undefined) {
        const seconds = ((second.at - first.at) / 1_000).toFixed(1)
        const same = second.body === first.body ? "the same body" : "another body"
        return {
          status: 0,
          text: `asked for ${pauseSeconds} s, the message came again after ${seconds} s with ${same}`
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return { status: 1, text: `${messages.length} messages came, none of them again` }
  }
  return {
    settings: ["--set", `webhooks.receivers=${JSON.stringify([{ key: "*", url, secret_env: "RECEIVER_SECRET" }])}`],
    environment: { RECEIVER_SECRET: "a-secret-that-signs-webhooks" },
    again,
    close: () => void server.close()
  }
}

/** Waits for a started program's output; returns the output so far. */
const until = async (running: Running, wanted: RegExp): Promise<Outcome> => {
  const end = performance.now() + settleMillisMax
  while (!wanted.test(running.said()) && performance.now() < end)
    await new Promise((resolve) => setTimeout(resolve, 100))
  return { status: 0, text: running.said() }
}

/** Runs something with a facilitator that is started for it. */
const beside = async (starting: Promise<Running>, play: (running: Running) => Promise<Outcome>): Promise<Outcome> => {
  const running = await starting
  try {
    return await play(running)
  } finally {
    await running.stop()
  }
}

/** With a local facilitator that serves at `at`, over the ledger at `ledgerUrl`. */
export const short = (
  { answerOf, inFolder, startServing, tollkeeper }: Starting,
  {
    at,
    freePorts,
    ledgerUrl,
    receiver
  }: {
    at: string
    freePorts: ReadonlyArray<string>
    ledgerUrl: string
    receiver: Awaited<ReturnType<typeof startReceiver>>
  }
): ReadonlyArray<Item> => {
  const sponsor = Keypair.random()
  const unfunded = inFolder("unfunded")
  const startOver = (state: string, rpc: string) =>
    startServing(
      [
        ...["--profile", "self-hosted", "--state", state, "--port", "0", "--set", "plugins=[x402-exact]"],
        ...["--set", `networks.ledger:testnet.rpc_urls=["${rpc}"]`],
        ...["--set", "database.embedded_folder=database"]
      ],
      { SPONSOR_SECRET: sponsor.secret() }
    )
  const startUnfunded = () => startOver(unfunded, ledgerUrl)
  const rpcAway = /the ledger's RPC is unreachable since \S+ \(ECONNREFUSED 127\.0\.0\.1:\d+\); settling is stopped/
  const withoutRpc = async (): Promise<Outcome> => {
    const proxy = await startRpcProxy(ledgerUrl, async ({ answer, passOn }) => {
      const { status, text } = await passOn()
      answer(status, text)
    })
    return beside(startOver(inFolder("away"), proxy.url), async (running) => {
      await until(running, /send XLM to G/)
      await proxy.close()
      const { text } = await until(running, rpcAway)
      const count = text.split("\n").filter((line) => rpcAway.test(line)).length
      return { status: count === 1 ? 0 : 1, text }
    })
  }
  const full = inFolder("full")
  const startFull = () =>
    startServing(["--state", full, ...freePorts, "--set", "database.disk_reserve_mb=1000000000"], {})
  const diskFull = /the disk is full: \d+ MB free in .*, less than the reserve of 1000000000 MB[;:] free some space/
  const between = async (payerHas: boolean): Promise<Outcome> => {
    const [payer, payee] = [Keypair.random(), Keypair.random()]
    await askFriendbot(ledgerUrl, payer.publicKey(), payerHas ? 1 : undefined)
    await askFriendbot(ledgerUrl, payee.publicKey(), payerHas ? undefined : 0)
    const { body } = await makePayment({ rpc: ledgerUrl, payer, payTo: payee.publicKey(), amount: 10_000n })
    const headers = { "content-type": "application/json" }
    return answerOf(`${at}/verify`, { method: "POST", headers, body: JSON.stringify(body) })
  }
  return [
    {
      name: "a start with an unfunded sponsor",
      play: () => beside(startUnfunded(), (running) => until(running, /send XLM to G/)),
      says: new RegExp(`the sponsor's account is not on the ledger; send XLM to ${sponsor.publicKey()}`),
      status: 0
    },
    {
      name: "doctor beside an unfunded sponsor",
      play: () => beside(startUnfunded(), () => tollkeeper("doctor", "--state", unfunded)),
      says: new RegExp(`fault +sponsor +the sponsor's account is not on the ledger: send XLM to ${sponsor.publicKey()}`)
    },
    {
      name: "a disk below its reserve",
      play: () => beside(startFull(), (running) => until(running, diskFull)),
      says: diskFull,
      status: 0
    },
    {
      name: "doctor on a disk below its reserve",
      play: () => beside(startFull(), () => tollkeeper("doctor", "--state", full)),
      says: new RegExp(`fault +disk +${diskFull.source}`)
    },
    { name: "an RPC that goes away", play: withoutRpc, says: rpcAway, status: 0 },
    {
      name: "a receiver that asks for time",
      play: receiver.again,
      says: /asked for 2 s, the message came again after [2-9]\.\d s with the same body/,
      status: 0
    },
    {
      name: "a payer without a trustline",
      play: () => between(false),
      says: /the payer G[A-Z2-7]{55} has no trustline to the asset; /,
      status: 200
    },
    {
      name: "a recipient without a trustline",
      play: () => between(true),
      says: /the recipient G[A-Z2-7]{55} has no trustline to the asset; /,
      status: 200
    }
  ]
}
