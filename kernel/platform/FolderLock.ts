// An exclusive lock on a folder, on one machine: read-modify-write of its files is safe from a second process that does
// the same. The lock of a dead process is taken over.
import { Context, type Effect, Schema, type Scope } from "effect"

/** Another living process has the folder. */
export class FolderInUse extends Schema.TaggedError<FolderInUse>()("FolderInUse", { message: Schema.String }) {}

export class FolderLock extends Context.Service<
  FolderLock,
  {
    /** Holds the folder until the Scope closes. */
    readonly hold: (folder: string) => Effect.Effect<void, FolderInUse, Scope.Scope>
    /** The same, once no other process has it: waits this long, by the machine's own time. */
    readonly holdSoon: (folder: string, waitMillis: number) => Effect.Effect<void, FolderInUse, Scope.Scope>
  }
>()("tollkeeper/platform/FolderLock") {}
