// Limits of clients that follow their settlements over an event stream.
import { Context, Effect, Layer } from "effect"
import { integer, section } from "./Setting.ts"
import { Settings } from "./Settings.ts"

export const eventsSection = section("events", "Streams at /settlements/events.", {
  streams_per_key_max: integer({ default: 4, min: 1, max: 1_000 }, "Maximum number of open streams per principal."),
  streams_max: integer({ default: 256, min: 1, max: 10_000 }, "Maximum number of open streams."),
  heartbeat_ms: integer(
    { default: 15_000, min: 100, max: 300_000, unit: "ms" },
    "Keep-alive interval: a quiet stream sends a comment, so that no proxy closes it."
  )
})

export class Events extends Context.Service<
  Events,
  {
    readonly streamsPerPrincipalMax: number
    readonly streamsMax: number
    readonly heartbeatMillis: number
    /** How far back a stream without a cursor begins. */
    readonly retainedMillis: number
  }
>()("tollkeeper/config/Events") {
  static readonly layer = Layer.effect(
    Events,
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(eventsSection)
      return Events.of({
        streamsPerPrincipalMax: values.streams_per_key_max,
        streamsMax: values.streams_max,
        heartbeatMillis: values.heartbeat_ms,
        retainedMillis: 900_000
      })
    })
  )
}
