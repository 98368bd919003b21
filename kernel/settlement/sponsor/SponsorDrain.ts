// Moves the XLM of rotated-out sponsors to an account of the operator's, in one transaction of the current sponsor. It
// leaves each former sponsor its reserve, because calls that were signed for it still need its account. A former
// sponsor keeps its XLM while it may have to pay a fee: while a settlement that it signed is open, or a replica signs
// with it.
import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Network } from "../../config/Network.ts"
import { LedgerRpc, type LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import { Signer, type SignerRefused } from "../../signer/Signer.ts"
import { liveSeconds } from "../channels/RotationJournal.ts"
import { SponsorTransactions } from "./SponsorTransactions.ts"

/** Nothing was moved. */
class DrainRefused extends Schema.TaggedError<DrainRefused>()("DrainRefused", { message: Schema.String }) {}

interface Drained {
  readonly account: string
  readonly amountStroops: bigint
}

type DrainError = DrainRefused | LedgerUnavailable | SignerRefused | SqlError.SqlError

/** Sponsors of one transaction: it has at most twenty signatures. */
const drainedMax = 19
const poll = "500 millis"
const patience = "90 seconds"

const refuse = (message: string) => Effect.fail(new DrainRefused({ message }))

export class SponsorDrain extends Context.Service<
  SponsorDrain,
  {
    /** Moves what former sponsors hold above their reserves; returns when the ledger shows it. */
    readonly drain: (to: string) => Effect.Effect<ReadonlyArray<Drained>, DrainError>
  }
>()("tollkeeper/settlement/SponsorDrain") {
  static readonly layer = Layer.effect(
    SponsorDrain,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id: network } = yield* Network
      const rpc = yield* LedgerRpc
      const signer = yield* Signer
      const transactions = yield* SponsorTransactions

      const inUse = (former: ReadonlyArray<string>) =>
        sql<{ open: number; live: number }>`select
          (select count(*)::int from kernel_settlements where network = ${network}
            and state in ('prepared', 'submitted') and sponsor = any(${former}::text[])) as open,
          (select count(*)::int from kernel_signers where network = ${network} and sponsor = any(${former}::text[])
            and seen_at > clock_timestamp() - make_interval(secs => ${liveSeconds}::float8)) as live`

      const balances = Effect.fnUntraced(function* (former: ReadonlyArray<string>, to: string) {
        const { accounts } = yield* rpc.accounts([...former, to])
        if (!accounts.has(to)) return yield* refuse(`${to} is no account on the ledger; create it first`)
        return former.flatMap((address): ReadonlyArray<Drained> => {
          const account = accounts.get(address)
          const amountStroops = account === undefined ? 0n : account.balanceStroops - account.reserveStroops
          return amountStroops > 0n ? [{ account: address, amountStroops }] : []
        })
      })

      /** Waits until no transaction of the sponsor is open. */
      const idle = Effect.repeat(transactions.settleOpen, {
        schedule: Schedule.spaced(poll),
        until: (isSettled) => isSettled
      })

      const drain = Effect.fn("SponsorDrain.drain")(function* (to: string) {
        const former = signer.sponsors.filter((address) => address !== signer.sponsor).slice(0, drainedMax)
        if (former.length === 0)
          return yield* refuse("the sources here hold no former sponsor's seed (NEW,OLD); `keys rotate sponsor` first")
        if (former.includes(to)) return yield* refuse(`${to} is a former sponsor itself; name another account`)
        const [use] = yield* inUse(former)
        if (use!.open > 0)
          return yield* refuse(`settlements under a former sponsor are open (${use!.open}); wait for their end`)
        if (use!.live > 0)
          return yield* refuse(`running replicas sign with a former sponsor (${use!.live}); renew their sources first`)
        const held = yield* balances(former, to)
        if (held.length === 0) return held
        yield* idle
        const { hash } = yield* transactions.last
        yield* transactions.submit(
          "drain",
          held.map((one) => ({ _tag: "Drain", to, ...one })),
          hash
        )
        yield* idle
        const left = yield* balances(former, to)
        return left.length === 0
          ? held
          : yield* refuse("the ledger does not show the transfer; see `tollkeeper doctor`, then run the command again")
      })

      return SponsorDrain.of({
        drain: (to) =>
          Effect.timeoutOrElse(drain(to), {
            duration: patience,
            orElse: () => refuse("the ledger did not include the transfer in time; run the command again")
          })
      })
    })
  )
}
