// `tollkeeper catalog`: operator actions, and why a URL is or is not listed. It only needs the database.
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Facts } from "../../kernel/facts/Facts.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { administration } from "../../plugins/catalog/plugin.ts"
import { visibleText } from "../visibleText.ts"
import { answer, byPerson, jsonFlag, noted, placeFlags, tablesOf, whyFlag } from "./CommandTarget.ts"

const flags = {
  ...placeFlags(),
  json: jsonFlag,
  url: Argument.String("url").pipe(Argument.withDescription("URL of the resource")),
  tool: Flag.String("tool").pipe(Flag.withDescription("Name of the tool, for an MCP resource"), Flag.optional)
}

const move = (name: "remove" | "quarantine" | "restore", description: string) =>
  Command.make(
    name,
    {
      ...flags,
      reason: whyFlag
    },
    Effect.fn(function* ({ json, reason, tool, url, ...place }) {
      const request = Option.match(tool, {
        onNone: () => ({ type: "http" as const, toolName: "" }),
        onSome: (toolName) => ({ type: "mcp" as const, toolName })
      })
      const moved = yield* Effect.gen(function* () {
        const asked = { ...request, url, move: name, note: reason, by: (yield* byPerson).person }
        return yield* noted({ action: `catalog ${name}`, subject: url, reason })(
          administration.moveResource(asked, yield* Facts, yield* Crypto),
          Option.match({ onNone: () => ({}), onSome: ({ from, to }) => ({ before: from, after: to }) })
        )
      }).pipe(Effect.provide(tablesOf(place, "catalog")))
      if (Option.isNone(moved))
        return yield* Effect.fail({
          _tag: "NotListed",
          message: `there is no listing of ${url}; \`tollkeeper catalog observations\` shows why`
        } as const)
      yield* answer(json, moved.value, [`${moved.value.resource}: ${moved.value.from} → ${moved.value.to}`])
    })
  ).pipe(Command.withDescription(description))

const observations = Command.make(
  "observations",
  flags,
  Effect.fn(function* ({ json: _json, tool: _, url, ...place }) {
    const explained = yield* Effect.gen(function* () {
      return yield* administration.explainListing({ url, limit: 50, offset: 0 }, yield* Crypto)
    }).pipe(Effect.provide(tablesOf(place, "catalog")))
    yield* Console.log(visibleText(JSON.stringify(explained, null, 2)))
  })
).pipe(Command.withDescription("Why a URL is or is not listed: observations, decisions and the state of its listings"))

export const catalog = Command.make("catalog").pipe(
  Command.withDescription("Operator actions on the catalog, and a URL's observations"),
  Command.withSubcommands([
    observations,
    move("remove", "Remove a listing until it is restored"),
    move("quarantine", "Hide a listing until it is restored"),
    move("restore", "Show a listing again")
  ])
)
