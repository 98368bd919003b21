// Secrets that sign webhooks are rotated by an operator's command, without a restart and with an overlap.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { runOperatorCommand } from "../../../runtime/operators.ts"
import { startReceiver } from "./receiver.ts"
import { paying, receivers, secret, start } from "./shop.ts"

it.live(
  "webhook secrets rotate without a restart, with an overlap",
  () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const file = `${yield* files.makeTempDirectoryScoped()}/shop`
      const next = "the-next-secret-that-signs"
      const write = (text: string) => files.writeFileString(file, text)
      yield* write(secret)
      const [before, after] = [yield* startReceiver({ secret }), yield* startReceiver({ secret: next })]
      const facilitator = yield* start(
        [
          // A payer waits for the end here, however busy the machine is.
          "limits.settle_timeout_ms=25000",
          receivers(
            { key: "shop", url: before.url, secret_env: "ROTATED", name: "before" },
            { key: "shop", url: after.url, secret_env: "ROTATED", name: "after" }
          )
        ],
        { ROTATED_FILE: file }
      )
      const command = (...words: ReadonlyArray<string>) =>
        runOperatorCommand(facilitator.services, { words: [...words, "--json"], folder: "." }, "0")
      const rotate = (...more: ReadonlyArray<string>) =>
        command("webhooks", "rotate", "before", "--reason", "a year is over", ...more)
      const pay = yield* paying(facilitator)
      const signed = Effect.gen(function* () {
        const [first, second] = [before.received.length, after.received.length]
        expect((yield* pay(facilitator)).json).toMatchObject({ success: true })
        const own = (yield* before.until(({ length }) => length >= first + 2)).slice(first)
        const other = (yield* after.until(({ length }) => length >= second + 2)).slice(second)
        return [...own, ...other].map(({ isSigned }) => isSigned)
      })

      expect(yield* signed).toEqual([true, true, false, false])
      const same = yield* rotate()
      expect([same.status, same.err]).toEqual([1, expect.stringContaining("write NEW,OLD into it first")])
      yield* write(`${next},${secret}\n`)
      const overlap = yield* rotate()
      expect([overlap.status, JSON.parse(overlap.out)]).toEqual([
        0,
        expect.objectContaining({ receiver: "before", signing: 2, added: 1, gone: 0 })
      ])
      // The other one's source is the same file, and was not asked to be read.
      expect(yield* signed).toEqual([true, true, false, false])
      const moves = facilitator.sql`select action, subject, reason, after, outcome
        from kernel_operator_acts where action = 'rotate' order by id desc limit 1`
      expect(yield* moves).toEqual([
        {
          action: "rotate",
          subject: "webhooks before",
          reason: "a year is over",
          after: "2 sign, 1 new, 0 gone",
          outcome: "done"
        }
      ])
      expect((yield* command("keys", "reread", "--reason", "a drill")).status).toBe(0)
      expect(yield* signed).toEqual([true, true, true, true])

      yield* write(next)
      expect((yield* rotate()).status).toBe(0)
      expect(yield* signed).toEqual([false, false, true, true])
      for (const faulty of ["short", "", "a-third-secret-that-signs", Array(5).fill(`${next},`).join("")]) {
        yield* write(faulty)
        const refused = yield* rotate()
        expect([refused.status, refused.out]).toEqual([1, ""])
        expect(refused.err).toContain("webhooks.receivers.before")
        expect((yield* command("keys", "reread", "--reason", "a drill")).status).toBe(1)
      }
      yield* files.remove(file)
      expect((yield* rotate()).err).toContain("the file that ROTATED_FILE names cannot be read")
      expect((yield* command("webhooks", "rotate", "unknown", "--reason", "x")).err).toContain(
        "webhooks.receivers has no receiver named unknown"
      )
      expect(yield* signed).toEqual([false, false, true, true])
      yield* write(secret)
      expect((yield* rotate("--at-once")).status).toBe(0)
      expect(yield* signed).toEqual([true, true, true, true])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
