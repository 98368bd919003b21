// The seller of the batch bench as a separate program: the page of `examples/batch`, which trusts the state of a
// channel for the configured time. It claims and settles on request over the channel of `fork`.
import { type ChildProcess, fork } from "node:child_process"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { BatchClaims } from "../../../examples/batch/BatchClaims.ts"
import { BatchStellarServer, keyAuthorizer } from "../../../examples/batch/BatchStellarServer.ts"
import { startBatchSeller } from "../../../examples/batch/startBatchSeller.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"

export interface ShopOrder {
  readonly facilitator: string
  readonly receiver: string
  /** Seed of the key that authorizes claims. */
  readonly authorizer: string
  readonly price: string
  /** How long it trusts the state of a channel without asking the facilitator. */
  readonly stateTtlMillis: number
}

type Reply = { readonly url: string } | { readonly transactions: ReadonlyArray<string> } | { readonly error: string }

const network = "ledger:testnet"

export interface BenchShop {
  readonly page: string
  /** Claims and settles the charges; returns the transactions. */
  readonly close: () => Promise<ReadonlyArray<string>>
  readonly stop: () => void
}

const replyOf = (child: ChildProcess): Promise<Exclude<Reply, { error: string }>> =>
  new Promise((resolve, reject) => {
    const ended = () => reject(new Error("the shop's process ended"))
    child.once("exit", ended)
    child.once("message", (reply: Reply) => {
      child.off("exit", ended)
      if ("error" in reply) reject(new Error(reply.error))
      else resolve(reply)
    })
  })

export const startShop = async (order: ShopOrder): Promise<BenchShop> => {
  const child = fork(fileURLToPath(import.meta.url), ["shop", JSON.stringify(order)], {
    stdio: "inherit",
    execArgv: ["--disable-warning=ExperimentalWarning"]
  })
  const started = await replyOf(child)
  if (!("url" in started)) throw new Error("the shop said something else")
  return {
    page: `${started.url}/page`,
    close: async () => {
      const closed = replyOf(child)
      child.send("close")
      const reply = await closed
      return "transactions" in reply ? reply.transactions : []
    },
    stop: () => child.kill()
  }
}

const serve = async ({ authorizer, facilitator, price, receiver, stateTtlMillis }: ShopOrder): Promise<void> => {
  const server = new BatchStellarServer({
    receiver,
    authorizer: keyAuthorizer(authorizer),
    minDepositTimes: 1,
    stateTtlMillis
  })
  const { url } = await startBatchSeller({ server, facilitator, network, asset: testnetUsdc, price: BigInt(price) })
  const claims = new BatchClaims({ server, facilitator, network, token: testnetUsdc, claimsPerTransaction: 199 })
  const close = async (): Promise<Reply> => ({ transactions: [...(await claims.claim()), await claims.settle()] })
  process.on("message", () => {
    close()
      .catch((error): Reply => ({ error: String(error) }))
      .then((reply) => process.send!(reply))
  })
  process.on("disconnect", () => process.exit())
  process.send!({ url } satisfies Reply)
}

if (process.send !== undefined && process.argv[2] === "shop")
  serve(JSON.parse(process.argv[3]!)).catch((error) => process.send!({ error: String(error) } satisfies Reply))
