// A reader of server-sent events for tests, by the format's rules: it distinguishes events and comments, and reports
// when the server has ended the stream.
import { Effect, type Scope } from "effect"
import { eventually } from "./eventually.ts"

export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: any
}

export interface EventStream {
  readonly status: number
  readonly headers: Headers
  readonly events: ReadonlyArray<ServerEvent>
  readonly comments: ReadonlyArray<string>
  /** Body of a refusal. */
  readonly body: any
  readonly hasEnded: () => boolean
  /** True if the connection broke before the stream's end. */
  readonly wasCutOff: () => boolean
  /** Waits until the events satisfy the predicate. */
  readonly until: (holds: (events: ReadonlyArray<ServerEvent>) => boolean) => Effect.Effect<ReadonlyArray<ServerEvent>>
  readonly ended: Effect.Effect<void>
  /** Closes the connection. */
  readonly close: Effect.Effect<void>
}

const parse = (block: string): ServerEvent => {
  const field = (name: string) =>
    block
      .split("\n")
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join("\n")
  return { id: field("id"), event: field("event"), data: JSON.parse(field("data")) }
}

const wait = (holds: () => boolean) => eventually(Effect.sync(holds))

/** Opens a stream; the Scope closes it. */
export const openEvents = (
  url: string,
  headers: Record<string, string> = {}
): Effect.Effect<EventStream, never, Scope.Scope> =>
  Effect.gen(function* () {
    const controller = yield* Effect.acquireRelease(
      Effect.sync(() => new AbortController()),
      (controller) => Effect.sync(() => controller.abort())
    )
    const response = yield* Effect.promise(() => fetch(url, { headers, signal: controller.signal }))
    const events: Array<ServerEvent> = []
    const comments: Array<string> = []
    let ended = false
    let cutOff = false
    let body: unknown
    if (response.status !== 200) body = yield* Effect.promise(() => response.json())
    else
      void (async () => {
        let text = ""
        for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
          text += chunk
          for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
            const block = text.slice(0, end)
            text = text.slice(end + 2)
            if (block.startsWith(":")) comments.push(block.slice(1).trim())
            else events.push(parse(block))
          }
        }
      })()
        .catch(() => (cutOff = true))
        .finally(() => (ended = true))
    return {
      status: response.status,
      headers: response.headers,
      events,
      comments,
      body,
      hasEnded: () => ended,
      wasCutOff: () => cutOff,
      until: (holds) =>
        Effect.as(
          wait(() => holds(events)),
          events
        ),
      ended: Effect.asVoid(wait(() => ended)),
      close: Effect.andThen(
        Effect.sync(() => controller.abort()),
        wait(() => ended)
      )
    }
  })
