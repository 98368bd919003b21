// Replaces a file as a whole: written beside it, flushed to the disk, and renamed in its place. A reader, or a process
// that begins after a crash, finds the former text or the new one. The folder is one process's, or `draft` a name that
// no other process writes.
import { Effect, type FileSystem, type PlatformError } from "effect"

/** For the owner of the process alone. `flag`: how the draft is opened; `wx` refuses one that exists. */
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
