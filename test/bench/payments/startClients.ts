// Starts the client process and gives it one order after another.
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { FillOrder, Order, Reply, SendFigures, SendOrder, SignOrder } from "./orders.ts"

export interface Clients {
  /** Signs payments into a pool and replaces its contents. */
  readonly sign: (order: Omit<SignOrder, "order">) => Promise<void>
  /** Puts bodies into a pool and replaces its contents. */
  readonly fill: (order: Omit<FillOrder, "order">) => Promise<void>
  readonly send: (order: Omit<SendOrder, "order">) => Promise<SendFigures>
  readonly stop: () => void
}

export const startClients = (): Clients => {
  const child: ChildProcess = fork(fileURLToPath(new URL("clients.ts", import.meta.url)), ["payments"], {
    stdio: "inherit",
    execArgv: ["--disable-warning=ExperimentalWarning"]
  })
  const ask = (order: Order): Promise<Exclude<Reply, { error: string }>> =>
    new Promise((resolve, reject) => {
      const ended = () => reject(new Error("the clients' process ended"))
      child.once("exit", ended)
      child.once("message", (reply: Reply) => {
        child.off("exit", ended)
        if ("error" in reply) reject(new Error(reply.error))
        else resolve(reply)
      })
      child.send(order)
    })
  return {
    sign: async (order) => {
      await ask({ order: "sign", ...order })
    },
    fill: async (order) => {
      await ask({ order: "fill", ...order })
    },
    send: async (order) => {
      const reply = await ask({ order: "send", ...order })
      if (!("figures" in reply)) throw new Error("the clients answered something else")
      return reply.figures
    },
    stop: () => child.kill()
  }
}
