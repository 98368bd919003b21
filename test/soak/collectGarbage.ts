// Collects the garbage of a running Node process, through the inspector that a signal opens on its usual port.
// Otherwise the size of a process depends on the time of the engine's last collection.
import process from "node:process"
import { openInspector } from "../support/openInspector.ts"
import { until } from "../support/rig/until.ts"

const listUrl = "http://127.0.0.1:9229/json"

const inspectors = () =>
  fetch(listUrl).then(
    (answer) => answer.json() as Promise<ReadonlyArray<{ readonly webSocketDebuggerUrl: string }>>,
    () => []
  )

export const collectGarbage = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGUSR1")
  await until("the inspector listens", async () => (await inspectors()).length > 0, 10_000)
  const { ask, close } = await openInspector((await inspectors())[0]!.webSocketDebuggerUrl)
  await ask("HeapProfiler.enable")
  await ask("HeapProfiler.collectGarbage")
  close()
}
