// `tollkeeper settlements`: what an operator sees of settlements without an end, and the moves that end them by hand.
// It works on the database alone: on a server beside the running replicas, on the embedded one only while no
// facilitator runs on its folder.
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { hostname } from "node:os"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { Budget } from "../kernel/budget/Budget.ts"
import { Limits } from "../kernel/config/Limits.ts"
import { Server } from "../kernel/config/Server.ts"
import { Settings } from "../kernel/config/Settings.ts"
import { Database } from "../kernel/database/Database.ts"
import * as Migrations from "../kernel/database/Migrations.ts"
import { Facts } from "../kernel/Facts.ts"
import { Host } from "../kernel/platform/Host.ts"
import { OperatorMoves } from "../kernel/settlement/OperatorMoves.ts"
import type { SettlementRecord } from "../kernel/settlement/Settlements.ts"
import * as SqlSettlements from "../kernel/settlement/SqlSettlements.ts"
import { Supervisor } from "../kernel/Supervisor.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
import { loadProfile } from "./profile.ts"
import { databaseAt } from "./serve.ts"

const flags = {
  profile: Flag.String("profile").pipe(
    Flag.withDescription("A shipped profile (local, hosted, self-hosted) or the path of a YAML file"),
    Flag.withDefault("local")
  ),
  state: Flag.String("state").pipe(
    Flag.withDescription("Folder of this process's state"),
    Flag.withDefault(".tollkeeper")
  ),
  set: Flag.String("set").pipe(
    Flag.withDescription("Override one setting: path=value, the value being YAML"),
    Flag.atLeast(0)
  )
}
const settlement = Argument.String("settlement").pipe(
  Argument.withDescription("Its id, or the hash of any of its transactions")
)
const note = Flag.String("note").pipe(Flag.withDescription("Why, for whoever reads it later"))

interface Place {
  readonly profile: string
  readonly state: string
  readonly set: ReadonlyArray<string>
}

const movesAt = (place: Place) =>
  Layer.unwrap(
    Effect.map(loadProfile(place.profile, place.set, process.env), (profile) =>
      OperatorMoves.layer.pipe(
        Layer.provideMerge(SqlSettlements.layer),
        Layer.provideMerge(Layer.mergeAll(Budget.layer, Facts.layer)),
        Layer.provide(Layer.effectDiscard(Migrations.run("kernel"))),
        Layer.provideMerge(Database.layer),
        Layer.provideMerge(
          Layer.mergeAll(
            Supervisor.layer,
            Layer.merge(Limits.layer, Server.layer).pipe(Layer.provideMerge(Settings.layer(profile))),
            NodeCrypto.layer,
            Layer.succeed(Host, { name: hostname(), stateFolder: place.state }),
            databaseAt(profile.secret("DATABASE_URL"), place.state),
            Layer.succeed(Migrations.MigrationsFolder, {
              path: fileURLToPath(new URL("../migrations/", import.meta.url))
            })
          )
        ),
        Layer.provide(NodeServices.layer)
      )
    )
  )

/** Runs something with the operator's moves over the place's database. */
const withMoves = <A, E>(place: Place, use: (moves: OperatorMoves["Service"]) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.provide(Effect.flatMap(OperatorMoves, use), movesAt(place)))

const toJson = (record: SettlementRecord): string =>
  JSON.stringify(
    record,
    (_, value) =>
      typeof value === "bigint" ? value.toString() : Option.isOption(value) ? Option.getOrNull(value) : value,
    2
  )

const line = ({
  amount,
  asset,
  authorizationExpiresLedger,
  id,
  innerHash,
  recordedAt,
  state
}: SettlementRecord): string =>
  [
    id,
    state.padEnd(10),
    recordedAt.toISOString(),
    `until ledger ${authorizationExpiresLedger}`,
    `${amount} of ${asset}`,
    innerHash
  ].join("  ")

const found = Effect.fnUntraced(function* (moves: OperatorMoves["Service"], idOrHash: string) {
  const record = yield* moves.find(idOrHash)
  return record === undefined
    ? yield* Effect.fail({ _tag: "NotFound", message: `no settlement has the id or hash ${idOrHash}` } as const)
    : record
})

const list = Command.make(
  "list",
  {
    ...flags,
    which: Flag.Literals("which", ["open", "unresolved", "all"]).pipe(
      Flag.withDescription("Which of those without an end"),
      Flag.withDefault("all" as const)
    )
  },
  (flags) =>
    withMoves(flags, (moves) =>
      Effect.gen(function* () {
        const records = yield* moves.list(flags.which)
        for (const record of records) yield* Console.log(line(record))
        yield* Console.log(`${records.length} settlement${records.length === 1 ? "" : "s"} without an end`)
      })
    )
).pipe(Command.withDescription("List settlements that are open or unresolved"))

const show = Command.make("show", { ...flags, settlement }, (flags) =>
  withMoves(flags, (moves) => Effect.flatMap(found(moves, flags.settlement), (record) => Console.log(toJson(record))))
).pipe(Command.withDescription("Print a settlement as it is stored"))

const giveUp = Command.make("give-up", { ...flags, settlement, note }, (flags) =>
  withMoves(flags, (moves) =>
    Effect.gen(function* () {
      const { id } = yield* found(moves, flags.settlement)
      yield* Console.log(line(yield* moves.giveUp(id, flags.note)))
    })
  )
).pipe(Command.withDescription("Make an open settlement unresolved: the ledger will never say how it ended"))

const resolve = Command.make(
  "resolve",
  {
    ...flags,
    settlement,
    note,
    as: Flag.Literals("as", ["settled", "failed", "expired"]).pipe(Flag.withDescription("How it ended")),
    ledger: Flag.Int("ledger").pipe(Flag.withDescription("The ledger in which it landed"), Flag.optional),
    feeStroops: Flag.Int("fee-stroops").pipe(
      Flag.withDescription("What the ledger charged the sponsor"),
      Flag.withDefault(0)
    )
  },
  (flags) =>
    withMoves(flags, (moves) =>
      Effect.gen(function* () {
        const { id } = yield* found(moves, flags.settlement)
        const finding = {
          state: flags.as,
          ledger: Option.getOrUndefined(flags.ledger),
          feeChargedStroops: BigInt(flags.feeStroops),
          note: flags.note
        }
        yield* Console.log(line(yield* moves.resolve(id, finding)))
      })
    )
).pipe(Command.withDescription("End an unresolved settlement as it was found to have ended"))

export const settlementsCommand = Command.make("settlements").pipe(
  Command.withDescription("Settlements without an end, for operators"),
  Command.withSubcommands([list, show, giveUp, resolve])
)
