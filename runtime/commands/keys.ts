// `tollkeeper keys`: who may ask, by label, and the variables read again without a restart. No secret is shown.
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { Server } from "../../kernel/config/Server.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { StateRefused } from "../state.ts"
import { answer, groundAt, jsonFlag, type Place, placeFlags, standing, Within } from "./place.ts"

const keysAt = (place: Place) =>
  standing(Keys.layer.pipe(Layer.provideMerge(Server.layer), Layer.provideMerge(groundAt(place))))

const list = Command.make("list", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const { listed } = yield* Keys
    const { callers, operators } = listed()
    const of = (names: ReadonlyArray<string>, what: string, none: string) =>
      names.length === 0 ? `no ${what}: ${none}` : `${what}: ${names.join(", ")}`
    yield* answer(json, { callers, operators }, [
      of(callers, "caller keys", "everybody who can reach the listener may ask"),
      of(operators, "operator keys", "moves over HTTP are refused, metrics are for this machine alone")
    ])
  }).pipe(Effect.provide(keysAt(place)))
).pipe(Command.withDescription("Who may ask: the principals of callers' and operators' keys"))

const reread = Command.make("reread", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    if ((yield* Within) === undefined)
      return yield* new StateRefused({
        message: `nothing runs over ${place.state} that could read its keys again; name another folder with --state DIR`
      })
    const keys = yield* Keys
    yield* keys.reread
    yield* answer(json, keys.listed(), ["keys were read again"])
  }).pipe(Effect.provide(keysAt(place)))
).pipe(Command.withDescription("Have the running process read its keys again, as SIGHUP does"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("Bearer keys of callers and operators"),
  Command.withSubcommands([list, reread])
)
