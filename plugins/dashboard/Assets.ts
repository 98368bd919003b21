// The files of the pages as browsers receive them: our own modules with their types stripped, our style sheet, and the
// libraries they import, straight from the installed packages. Nothing is built and nothing is loaded from elsewhere.
// A file is read, stripped and compressed on its first request, and cached; a path outside the lists here is not
// served.
import { Context, Effect, FileSystem, Layer, Option, Path } from "effect"
import { entityTag, gzip } from "../../kernel/http/rendered.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Packages, StripTypes } from "../../kernel/platform/Packages.ts"

export interface Asset {
  readonly contentType: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly gzipped: Uint8Array<ArrayBuffer>
  readonly etag: string
}

const types = {
  script: "text/javascript; charset=utf-8",
  style: "text/css; charset=utf-8",
  image: "image/svg+xml"
} as const

/** Bare imports, as the browser's import map has them, and their files in the packages. */
export const libraries: Readonly<Record<string, string>> = {
  preact: "preact.js",
  "preact/hooks": "hooks.js",
  uplot: "uplot.js"
}

/** Files of packages by the path they are served at. */
const packaged: Readonly<Record<string, readonly [file: string, type: keyof typeof types]>> = {
  "/dashboard/library/preact.js": ["preact/dist/preact.mjs", "script"],
  "/dashboard/library/hooks.js": ["preact/hooks/dist/hooks.mjs", "script"],
  "/dashboard/library/uplot.js": ["uplot/dist/uPlot.iife.min.js", "script"],
  "/dashboard/library/uplot.css": ["uplot/dist/uPlot.min.css", "style"],
  "/dashboard/library/api.js": ["swagger-ui-dist/swagger-ui-bundle.js", "script"],
  "/dashboard/library/api.css": ["swagger-ui-dist/swagger-ui.css", "style"]
}

/**
 * uPlot's package has an ES module only unminified. We serve its minified script with an export appended, at half the
 * size.
 */
const appended: Readonly<Record<string, string>> = { "/dashboard/library/uplot.js": "\nexport default uPlot\n" }

/** Published scripts that a page runs unchanged, by the path that its import resolves to. */
const scriptPath = /^\/examples\/receipts\/((?:check|verify)\.mjs)$/

const ownPath = /^\/dashboard\/web\/([A-Za-z]+)\.(ts|css|svg)$/

export class Assets extends Context.Service<
  Assets,
  {
    /** Paths of one of our modules and all of its imports, for a page to preload. */
    readonly closure: (module: string) => Effect.Effect<ReadonlyArray<string>>
    readonly find: (path: string) => Effect.Effect<Option.Option<Asset>>
  }
>()("tollkeeper/dashboard/Assets") {
  static readonly layer = Layer.effect(
    Assets,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const paths = yield* Path.Path
      const crypto = yield* Crypto
      const { strip } = yield* StripTypes
      const packages = yield* Packages
      const folder = yield* Effect.orDie(paths.fromFileUrl(new URL("web/", import.meta.url)))
      const scripts = yield* Effect.orDie(paths.fromFileUrl(new URL("../../examples/receipts/", import.meta.url)))
      const own = new Set(yield* files.readDirectory(folder))
      const kept = new Map<string, Asset>()

      /** File and type of a path. None for a path that is not served. */
      const placeOf = (
        path: string
      ): Option.Option<readonly [file: Effect.Effect<string>, type: keyof typeof types]> => {
        const [, script] = scriptPath.exec(path) ?? []
        if (script !== undefined) return Option.some([Effect.succeed(paths.join(scripts, script)), "script"])
        const [, name, ending] = ownPath.exec(path) ?? []
        if (name !== undefined && own.has(`${name}.${ending}`)) {
          const type = ending === "ts" ? "script" : ending === "css" ? "style" : "image"
          return Option.some([Effect.succeed(paths.join(folder, `${name}.${ending}`)), type])
        }
        return Option.map(Option.fromUndefinedOr(packaged[path]), ([file, type]) => [packages.file(file), type])
      }

      const read = Effect.fnUntraced(function* (path: string, file: Effect.Effect<string>, type: keyof typeof types) {
        const source = yield* Effect.orDie(files.readFileString(yield* file))
        const text = path.endsWith(".ts")
          ? strip(source)
          : source.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n") + (appended[path] ?? "")
        const bytes = new TextEncoder().encode(text)
        const asset: Asset = {
          contentType: types[type],
          bytes,
          gzipped: yield* gzip(bytes),
          etag: entityTag(crypto, bytes)
        }
        kept.set(path, asset)
        return asset
      })

      const closure = Effect.fnUntraced(function* (module: string) {
        const found = new Set([module])
        for (const name of found) {
          const source = yield* Effect.orDie(files.readFileString(paths.join(folder, name)))
          for (const [, imported] of source.matchAll(/ from "\.\/([A-Za-z]+\.ts)"/g)) found.add(imported!)
        }
        return [...found].map((name) => `/dashboard/web/${name}`)
      })

      return Assets.of({
        closure,
        find: (path) => {
          const known = kept.get(path)
          if (known !== undefined) return Effect.succeedSome(known)
          return Option.match(placeOf(path), {
            onNone: () => Effect.succeedNone,
            onSome: ([file, type]) => Effect.asSome(read(path, file, type))
          })
        }
      })
    })
  )
}
