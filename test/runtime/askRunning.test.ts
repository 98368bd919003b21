// A command that a running process received: it is not run a second time, and its end by time is reported.
import { expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { KeyRevisions } from "../../kernel/accounts/KeyRevisions.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { askRunning } from "../../runtime/askRunning.ts"
import { runOperatorCommand } from "../../runtime/operators.ts"
import { announce } from "../../runtime/state.ts"

/** A process over a new state folder that treats its connections so. */
const processThat = Effect.fnUntraced(function* (handle: (socket: Socket) => void) {
  const state = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tollkeeper-asked-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const listening = createServer(handle).listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
    }),
    (server) => Effect.sync(() => void server.close())
  )
  const { port } = server.address() as AddressInfo
  const operators = { url: `http://127.0.0.1:${port}`, key: "key", families: ["receipts" as const] }
  yield* announce(state, { profile: "local", isAlone: false, database: "embedded", operators })
  return { state, server }
})

const erase = (state: string) => askRunning(["receipts", "erase", "00", "--reason", "asked", "--state", state])

it.live("a command whose answer is lost is not run again", () =>
  Effect.gen(function* () {
    const { state } = yield* processThat((socket) => socket.once("data", () => socket.destroy()))
    const { message } = yield* Effect.flip(erase(state))
    expect(message).toMatch(/received the command and did not answer, so it may have been carried out; .* acts/)
  }).pipe(Effect.scoped)
)

it.live("a process that no longer listens has not received the command", () =>
  Effect.gen(function* () {
    const { server, state } = yield* processThat(() => {})
    server.close()
    expect(yield* erase(state)).toEqual(Option.none())
  }).pipe(Effect.scoped)
)

it.effect("a command that takes too long ends with a message", () =>
  Effect.gen(function* () {
    const services = Context.make(KeyRevisions, {
      reread: () => Effect.never,
      register: () => Effect.void
    } as KeyRevisions["Service"]).pipe(Context.add(Keys, {} as Keys["Service"])) as Context.Context<never>
    const words = ["keys", "reread", "--reason", "a new key"]
    const running = yield* Effect.forkChild(runOperatorCommand(services, { folder: ".", words }, "0.1.0"))
    yield* TestClock.adjust("5 minutes")
    const { err, status } = yield* Fiber.join(running)
    expect([status, err]).toEqual([1, expect.stringMatching(/interrupted the command after 290 seconds; .*--state/)])
  })
)
