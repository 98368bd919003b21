import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestConsole } from "effect/testing"
import { StartupBanner } from "../../kernel/StartupBanner.ts"
import { ListenAt } from "../../kernel/http/ListenAt.ts"
import { greeting } from "../../runtime/greeting.ts"

const reported = (address: { readonly host: string; readonly port: number } | undefined, isForPeople = true) =>
  Effect.gen(function* () {
    yield* greeting({ address, profile: "local", stateFolder: ".state", isForPeople })
    return { out: (yield* TestConsole.logLines).join("\n"), err: (yield* TestConsole.errorLines).join("\n") }
  })

describe("the startup banner", () => {
  it.effect("prints the facilitator's address, plugins' lines, then commands to try", () =>
    Effect.gen(function* () {
      const { add, suggest: hint } = yield* StartupBanner
      yield* add({ label: "ledger", where: ["http://127.0.0.1:8000", "https://127.0.0.1:8443"] })
      yield* hint("Try it.")
      const { err, out } = yield* reported({ host: "0.0.0.0", port: 4022 })
      expect(err).toBe("")
      expect(out.split("\n")).toEqual([
        "",
        "Tollkeeper is ready (profile local; state in .state)",
        "  facilitator   http://127.0.0.1:4022",
        "  bound to      every address of this machine (0.0.0.0)",
        "  ledger        http://127.0.0.1:8000",
        "                https://127.0.0.1:8443",
        "",
        "Try it.",
        ""
      ])
    }).pipe(Effect.provide([StartupBanner.layer, ListenAt.layer]))
  )

  it.effect("the banner names page, payment and end of this very process, with its port and folder", () =>
    Effect.gen(function* () {
      const { suggest, tryCommand } = yield* StartupBanner
      yield* tryCommand("pay")
      yield* suggest("In a browser:  {url}")
      const { out } = yield* reported({ host: "127.0.0.1", port: 5022 })
      expect(out).toContain("Try it, in another terminal:  npm run pay -- --state .state")
      expect(out).toContain("In a browser:  http://127.0.0.1:5022")
      expect(out).toContain("Stop it with Ctrl+C: payments in progress finish first, and its state stays in .state.")
    }).pipe(Effect.provide([StartupBanner.layer, ListenAt.layer]))
  )

  it.effect("the banner prints bound addresses, omitting hints useless to other machines", () =>
    Effect.gen(function* () {
      const bound = (host: string) =>
        Effect.map(reported({ host, port: 9 }), ({ out }) => out.split("\n").filter((line) => line.startsWith("  ")))
      expect(yield* bound("127.0.0.1")).toEqual(["  facilitator   http://127.0.0.1:9"])
      expect((yield* bound("::")).slice(-2)).toEqual([
        "  facilitator   http://[::1]:9",
        "  bound to      every address of this machine (::)"
      ])
    }).pipe(Effect.provide([StartupBanner.layer, ListenAt.layer]))
  )

  it.effect("the banner is one JSON object where output is collected", () =>
    Effect.gen(function* () {
      yield* (yield* StartupBanner).add({ label: "ledger", where: ["http://127.0.0.1:8000", "https://127.0.0.1:8443"] })
      const { err, out } = yield* reported({ host: "127.0.0.1", port: 4022 }, false)
      expect([err, out.split("\n").length]).toEqual(["", 1])
      expect(JSON.parse(out)).toMatchObject({
        level: "INFO",
        message: expect.stringMatching(/ready.*facilitator http:\/\/127\.0\.0\.1:4022 ledger http/),
        annotations: { event: "ready", facilitator: ["http://127.0.0.1:4022"] }
      })
    }).pipe(Effect.provide([StartupBanner.layer, ListenAt.layer]))
  )

  it.effect("the banner goes to stderr if a plugin defines the transport", () =>
    Effect.gen(function* () {
      yield* (yield* ListenAt).choose({ at: "nowhere", begins: Effect.void, closing: Effect.void })
      yield* (yield* StartupBanner).title("Agent tools are ready")
      const { err, out } = yield* reported(undefined)
      expect(out).toBe("")
      expect(err).toContain(
        "Agent tools are ready (profile local; state in .state)\n  reached       over stdin and stdout"
      )
    }).pipe(Effect.provide([StartupBanner.layer, ListenAt.layer]))
  )
})
