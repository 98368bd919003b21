// An exclusive lock on a folder, on one machine: it makes read-modify-write of its files safe from a second process
// that does the same. The lock of a dead process is taken over.
import { Context, type Effect, Schema, type Scope } from "effect"

/** Another live process holds the folder. */
export class FolderInUse extends Schema.TaggedError<FolderInUse>()("FolderInUse", { message: Schema.String }) {}

export class FolderLock extends Context.Service<
  FolderLock,
  {
    /** Holds the folder until the Scope closes. */
    readonly hold: (folder: string) => Effect.Effect<void, FolderInUse, Scope.Scope>
    /** The same, but waits up to this long for another process to release it, by the machine's own time. */
    readonly holdSoon: (folder: string, waitMillis: number) => Effect.Effect<void, FolderInUse, Scope.Scope>
  }
>()("tollkeeper/platform/FolderLock") {}
