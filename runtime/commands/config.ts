// `tollkeeper config`: every setting there is, and whether a profile's are well-formed. Nothing is started.
import { Console, Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { sections } from "../../kernel/config/Setting.ts"
import { decodeSection } from "../../kernel/config/Settings.ts"
import { makeCatalogue } from "../App.ts"
import { placeFlags, profileAt } from "./place.ts"

const schema = Command.make("schema", {}, () =>
  Console.log(
    JSON.stringify(
      Object.fromEntries(
        [...sections()].map(([name, section]) => [name, Schema.toJsonSchemaDocument(section.schema).schema])
      ),
      null,
      2
    )
  )
).pipe(Command.withDescription("Print every setting with its type, default and documentation"))

const { profile, set } = placeFlags()

const check = Command.make(
  "check",
  { profile, set },
  Effect.fn(function* (place) {
    const profile = yield* profileAt(place)
    makeCatalogue(profile)
    for (const section of sections().values()) yield* decodeSection(section, profile.tree)
    yield* Console.log(`${profile.name}: ${profile.plugins.join(", ")}: every setting is well-formed`)
  })
).pipe(Command.withDescription("Check a profile without starting anything"))

export const config = Command.make("config").pipe(
  Command.withDescription("Settings and profiles"),
  Command.withSubcommands([schema, check])
)
