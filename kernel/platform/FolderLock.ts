// A folder that one process has alone, on one machine: what is kept in it by reading, deciding and writing is safe from
// a second process that does the same. The lock of a process that has died is taken over.
import { Context, type Effect, Schema, type Scope } from "effect"

/** Another living process has the folder. */
export class FolderInUse extends Schema.TaggedError<FolderInUse>()("FolderInUse", { message: Schema.String }) {}

export class FolderLock extends Context.Service<
  FolderLock,
  {
    /** Holds the folder until the Scope closes. */
    readonly hold: (folder: string) => Effect.Effect<void, FolderInUse, Scope.Scope>
  }
>()("tollkeeper/platform/FolderLock") {}
