// The machine as plugins may know it: its name, and the process's own folder for state.
import { Context } from "effect"

export class Host extends Context.Service<
  Host,
  {
    /** The machine's name; the default of `server.instance`. */
    readonly name: string
    /**
     * Absolute path of the state folder (`--state`, default `.tollkeeper`). It exists and is writable by this user
     * alone.
     */
    readonly stateFolder: string
  }
>()("tollkeeper/platform/Host") {}
