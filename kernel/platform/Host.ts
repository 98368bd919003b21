// The machine, for plugins: its name, and the process's folder for state.
import { Context } from "effect"

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
