// `tollkeeper redteam --url URL`: plays numbered attacks against any x402 facilitator, seller or MCP server, and prints
// a score card. Exit code 1 if a case failed.
import { Data, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { writeFile } from "node:fs/promises"
import { answer, jsonFlag } from "./CommandTarget.ts"

class RedTeamFailed extends Data.TaggedError("RedTeamFailed")<{ readonly message: string }> {}

const optional = (name: string, words: string) =>
  Flag.String(name).pipe(Flag.withDescription(words), Flag.optional, Flag.map(Option.getOrUndefined))

export const redteam = Command.make(
  "redteam",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription("Base of a facilitator, a paid page, or an MCP endpoint; repeat it to compare"),
      Flag.atLeast(1)
    ),
    kind: Flag.Literals("kind", ["facilitator", "seller", "mcp"]).pipe(
      Flag.withDescription("Kind of the targets; default what each answers"),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    ledger: optional("ledger", "A ledger with a friendbot, for the cases that pay; default none"),
    key: optional("key", "Bearer key for the targets; default none"),
    html: optional("html", "File for the score card as a page; default none"),
    json: jsonFlag
  },
  Effect.fn(function* ({ html, json, key, kind, ledger, url: urls }) {
    const cards = yield* Effect.tryPromise({
      try: async () => {
        const { kindOf } = await import("../redteam/target.ts")
        const { playCases } = await import("../redteam/run.ts")
        const all = []
        for (const one of urls) {
          const url = one.replace(/\/+$/, "")
          all.push(await playCases({ url, kind: kind ?? (await kindOf(url, key)), ledger, key }))
        }
        return all
      },
      catch: (cause) => new RedTeamFailed({ message: `the attacks were not played: ${(cause as Error).message}` })
    })
    const { lineOf, pageOf, totalOf } = yield* Effect.promise(() => import("../redteam/card.ts"))
    if (html !== undefined) yield* Effect.promise(() => writeFile(html, pageOf(cards)))
    const failed = cards.reduce((sum, card) => sum + card.failed, 0)
    yield* answer(json, { targets: cards }, [
      ...cards.flatMap(({ scores }) => scores.map(lineOf)),
      ...cards.map(totalOf)
    ])
    if (failed > 0) return yield* new RedTeamFailed({ message: `${failed} cases failed` })
  })
).pipe(Command.withDescription("Attack an x402 facilitator, seller or MCP server, and print a score card"))
