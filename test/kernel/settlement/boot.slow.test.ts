// A start with a thousand settlements without an outcome, on as many channels. The program first answers and then
// follows them. The ledger's decisions in the meantime are found automatically, and the channels come back.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import process from "node:process"
import { Settings } from "../../../kernel/config/Settings.ts"
import { Database } from "../../../kernel/database/Database.ts"
import * as Pglite from "../../../runtime/platform/pglite.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { freePort } from "../../support/freePort.ts"
import { launchProgram } from "../../support/launchProgram.ts"

const count = 1_000
const readyMillisMax = 5_000

it.live(
  "is ready within 5 s with 1,000 open settlements, and ends them [S92, S94]",
  () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-boot-" })
      const world = yield* startFacilitator({ channels: 1, closeMillis: 300 })
      const port = yield* Effect.promise(freePort)
      const url = `http://127.0.0.1:${port}`
      const launch = launchProgram({
        world,
        stateFolder: state,
        port,
        channels: count,
        set: [`limits.max_pending_settlements=${2 * count}`]
      })
      /** Uses the program's database while the program does not run. */
      const withDatabase = <A, E>(use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
        Effect.scoped(
          Effect.flatMap(SqlClient.SqlClient, use).pipe(
            Effect.provide(
              Database.layer.pipe(
                Layer.provide(Pglite.layer(`${state}/database`)),
                Layer.provide(Settings.layerTest({}, () => Option.none()))
              )
            )
          )
        )
      const openOf = (sql: SqlClient.SqlClient) =>
        sql<{
          open: number
          ready: number
          held: number
        }>`select (select count(*)::int from kernel_settlements where state in ('prepared', 'submitted')) as open,
        (select count(*)::int from kernel_channels where state = 'ready' and sequence is not null) as ready,
        (select count(*)::int from kernel_channels where settlement is not null) as held`

      const gauge = (name: string) =>
        Effect.promise(() =>
          fetch(`${url}/metrics`)
            .then((response) => response.text())
            .then((text) => Number(new RegExp(`^${name} ([0-9]+)`, "m").exec(text)?.[1]))
        )
      const until = (name: string, expected: number) =>
        Effect.repeat(gauge(name), {
          until: (value) => value === expected,
          schedule: Schedule.spaced("200 millis")
        }).pipe(Effect.timeout("60 seconds"))

      // Channels are made by the program itself, a hundred in a transaction.
      const supported = Effect.promise(() =>
        fetch(`${url}/supported`).then((response) => response.json() as Promise<any>)
      )
      const first = yield* launch
      expect((yield* supported).signers["ledger:*"]).toHaveLength(count + 1)
      yield* until("tollkeeper_channels_ready", count)
      yield* Effect.promise(() => first.program.stop())
      const idle = yield* launch
      yield* Effect.promise(() => idle.program.stop())
      const now = world.ledger.ledger.latest.sequence
      yield* withDatabase(
        Effect.fnUntraced(function* (sql) {
          const [before] = yield* openOf(sql)
          expect(before).toMatchObject({ open: 0, ready: count })
          yield* sql`insert into kernel_settlements (id, network, scheme, authorization_key,
              authorization_expires_ledger, fingerprint, principal, payer, pay_to, asset, amount_max, amount,
              inner_hash, sponsor, channel, channel_sequence, resource_fee_stroops, recorded_ledger, deadline_at,
              budget_day, budget_stroops, budget_shard, budget_keyed, state)
            select gen_random_uuid(), network, 'exact', 'authorization-' || number,
              ${now}, 'fingerprint-' || number, 'caller', 'payer', 'seller', 'asset', 10, 10,
              lpad(to_hex(number), 64, '0'), sponsor, address, sequence + 1, 40000, ${now - 10}, clock_timestamp(),
              current_date, 0, 0, false, 'submitted'
            from kernel_channels where state = 'ready'`
          yield* sql`insert into kernel_attempts (settlement, number, kind, inner_hash, outer_hash, envelope,
              inclusion_stroops, recorded_ledger, sent_status, sent_ledger)
            select id, 1, 'payment', inner_hash, reverse(inner_hash), decode(repeat('00', 1500), 'hex'),
              200, recorded_ledger, 'Pending', recorded_ledger from kernel_settlements`
          yield* sql`update kernel_channels as c set settlement = s.id
            from kernel_settlements s where s.channel = c.address`
          expect((yield* openOf(sql))[0]).toMatchObject({ open: count, held: count })
        })
      )
      const { millis, program } = yield* launch
      process.stdout.write(
        `ready after ${Math.round(millis)} ms with ${count} open settlements, ${Math.round(idle.millis)} ms without\n`
      )
      // On a busy machine, at most a second more than a start without settlements to follow.
      expect(millis).toBeLessThan(Math.max(readyMillisMax, idle.millis + 1_000))
      // A payment settles as soon as one channel is back.
      const payer = yield* world.account()
      const seller = yield* world.account(0n)
      const { body } = yield* world.payment({
        payer,
        payTo: seller.publicKey(),
        amount: 10_000n,
        maxTimeoutSeconds: 300
      })
      const settle = Effect.promise(() =>
        fetch(`${url}/settle`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body)
        }).then(async (response) => ({ status: response.status, json: (await response.json()) as any }))
      )
      const answer = yield* Effect.repeat(settle, {
        until: ({ status }) => status !== 503,
        schedule: Schedule.spaced("200 millis")
      })
      expect(answer.json).toMatchObject({ success: true })
      yield* until("tollkeeper_settlements_open", 0)
      yield* Effect.promise(() => program.stop())
      expect((yield* withDatabase(openOf))[0]).toMatchObject({ open: 0, held: 0, ready: count })
      const states = yield* withDatabase(
        (sql) => sql`select state, count(*)::int as count from kernel_settlements group by state order by state`
      )
      expect(states).toEqual([
        { state: "expired", count },
        { state: "settled", count: 1 }
      ])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
