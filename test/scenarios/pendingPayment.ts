// A payment that is recorded and cannot be submitted, so that it is in flight while something else happens; and its
// outcome.
import { setTimeout as sleep } from "node:timers/promises"
import type { World } from "./World.ts"

type Made = Awaited<ReturnType<World["traffic"]["make"]>>

export interface Pending {
  readonly made: Made
  /** From an answer without a known outcome. */
  readonly transaction: string
}

const endMillisMax = 240_000

/** While submissions are held: sends a payment until it is recorded and pending. */
export const pendingPayment = async ({ traffic }: World): Promise<Pending> => {
  const made = await traffic.make()
  const end = performance.now() + endMillisMax
  while (performance.now() < end) {
    const answer = await traffic.settle(made.body)
    if (answer?.errorReason === "settle_ledger_transaction_status_unknown")
      return { made, transaction: answer.transaction }
    if (answer?.success === true) throw new Error("a payment settled although no submission passes")
    await sleep(300)
  }
  throw new Error("no payment became pending")
}

/** Waits until it is settled by the reported transaction, and its seller receives success. */
export const settledInTheEnd = async (world: World, { made, transaction }: Pending): Promise<void> => {
  const before = world.traffic.paid.length
  if (!(await world.traffic.bring(made))) throw new Error(`${transaction} was pending and did not settle`)
  const paid = world.traffic.paid.slice(before).find(({ body }) => body === made.body)
  if (paid?.transaction !== transaction) throw new Error(`${transaction} was pending, ${paid?.transaction} settled`)
}
