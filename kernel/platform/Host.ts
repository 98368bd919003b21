// The machine, for plugins: its name, the process's folder for state, and exclusive locks on folders. A lock makes
// read-modify-write of a folder's files safe from a second process on the machine; a dead process's lock is taken over.
import { Context, type Effect, Schema, type Scope } from "effect"

/** A file in the state folder: operators' actions that no database could record. */
export const keptActsFile = "acts.jsonl"

export class Host extends Context.Service<
  Host,
  {
    /** The machine's name; the default of `server.instance`. */
    readonly name: string
    /**
     * Absolute path of the state folder (`--state`, default `.tollkeeper`). It exists, and only this user can write it.
     */
    readonly stateFolder: string
  }
>()("tollkeeper/platform/Host") {}

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
