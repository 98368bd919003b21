// Replaces a file as a whole: writes a draft next to it, flushes it to disk, and renames it into place. A reader, or a
// process that starts after a crash, finds the old or the new text. Either one process owns the folder, or no other
// process writes a file with the name of `draft`.
import { Effect, type FileSystem, type PlatformError } from "effect"

/** Only the process's user can read the file. `flag`: how the draft is opened; `wx` fails if it exists. */
export const replaceFile = (
  files: FileSystem.FileSystem,
  file: string,
  text: string,
  { draft = `${file}.draft`, flag = "w" }: { readonly draft?: string; readonly flag?: "w" | "wx" } = {}
): Effect.Effect<void, PlatformError.PlatformError> =>
  Effect.gen(function* () {
    const handle = yield* files.open(draft, { flag, mode: 0o600 })
    yield* handle.writeAll(new TextEncoder().encode(text))
    yield* handle.sync
  }).pipe(Effect.scoped, Effect.andThen(files.rename(draft, file)))
