// The public routes of the log (C2SP tlog-tiles): checkpoints, tiles, entries, epochs. The content behind a tile's URL
// never changes, so caches may keep it indefinitely. A part that does not exist yet gets 404.
import { Effect, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { json, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import * as routes from "./description.ts"
import { Checkpoints } from "./log/Checkpoints.ts"
import { joinedBytes } from "../../kernel/stellar/joinBytes.ts"
import { tileWidth } from "./log/merkle.ts"
import { Tree } from "./log/Tree.ts"

type Response = HttpServerResponse.HttpServerResponse

const unknown = json({ error: "not_found", message: "the log has no such part" }, { status: 404 })

/** A page of any origin may check a receipt. */
const open = { "access-control-allow-origin": "*", "x-content-type-options": "nosniff" }
const forever = { ...open, "cache-control": "public, max-age=31536000, immutable" }
const never = { ...open, "cache-control": "no-cache" }

/** The hashes or entries that a path names. */
interface TilePath {
  /** Level of the tile; `entries` for the leaves themselves. */
  readonly level: number | "entries"
  readonly from: number
  readonly to: number
}

const pathForm = /^(entries|[0-9]|[1-5][0-9]|6[0-3])\/((?:x[0-9]{3}\/)*[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/

/** Parses `LEVEL/x001/x234/067.p/17`; undefined for other paths. */
export const readTilePath = (path: string): TilePath | undefined => {
  const [, level, groups, partial] = pathForm.exec(path) ?? []
  if (level === undefined || groups === undefined) return undefined
  // Each tile has one spelling.
  if (groups.startsWith("x000/")) return undefined
  const index = Number(groups.replace(/[x/]/g, ""))
  const width = partial === undefined ? tileWidth : Number(partial)
  if (width >= tileWidth && partial !== undefined) return undefined
  const from = index * tileWidth
  if (!Number.isSafeInteger(from + width)) return undefined
  return { level: level === "entries" ? level : Number(level), from, to: from + width }
}

/** A bundle of entries, each preceded by its length. */
const bundleOf = (entries: ReadonlyArray<Uint8Array>): Uint8Array =>
  joinedBytes(...entries.flatMap((entry) => [Uint8Array.of(entry.length >> 8, entry.length & 0xff), entry]))

type Params = Readonly<Record<string, string | undefined>>
type Read<E> = (params: Params) => Effect.Effect<Response, E>

const reading = <E>(read: Read<E>) =>
  Effect.flatMap(HttpRouter.params, (params) =>
    Effect.catch(read(params), (error) =>
      Effect.as(Effect.logWarning("the log could not be read", error), temporarilyUnavailable)
    )
  )

export const addLogRoutes = Effect.gen(function* () {
  const checkpoints = yield* Checkpoints
  const tree = yield* Tree

  const inEpoch = <E>(params: Params, read: (epoch: number) => Effect.Effect<Response, E>) =>
    Effect.flatMap(checkpoints.epochOf(params["epoch"] ?? ""), (epoch) =>
      epoch === undefined ? Effect.succeed(unknown) : Effect.mapError(read(epoch), (error): unknown => error)
    )

  const checkpoint = (epoch: number) =>
    Effect.map(
      checkpoints.newest(epoch),
      Option.match({
        onNone: () => unknown,
        onSome: ({ note }) =>
          HttpServerResponse.text(note, { contentType: "text/plain; charset=utf-8", headers: never })
      })
    )

  const tile = Effect.fnUntraced(function* (epoch: number, path: string | undefined) {
    const asked = readTilePath(path ?? "")
    if (asked === undefined) return unknown
    const { from, level, to } = asked
    const found =
      level === "entries" ? yield* tree.entries(epoch, from, to) : yield* tree.hashes(epoch, level, from, to)
    if (found.length < to - from) return unknown
    const bytes = level === "entries" ? bundleOf(found) : joinedBytes(...found)
    return HttpServerResponse.uint8Array(bytes, { contentType: "application/octet-stream", headers: forever })
  })

  const epochs = Effect.map(checkpoints.epochs, (epochs) => json({ epochs }, { headers: never }))

  yield* addRoutes(routes.group, [
    route(
      routes.checkpoint,
      reading(() => checkpoint(1))
    ),
    route(
      routes.epochCheckpoint,
      reading((params) => inEpoch(params, checkpoint))
    ),
    route(
      routes.tile,
      reading((params) => tile(1, params["*"]))
    ),
    route(
      routes.epochTile,
      reading((params) => inEpoch(params, (epoch) => tile(epoch, params["*"])))
    ),
    route(
      routes.epochs,
      reading(() => epochs)
    )
  ])
})
