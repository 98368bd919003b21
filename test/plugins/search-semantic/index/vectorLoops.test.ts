import { expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { buildLoops, loopsFolder, loopsSource } from "../../../contract/vectorLoops.ts"

it("the module of the loops is what its source gives", async () => {
  expect(readFileSync(`${loopsFolder}vectorLoopsWasm.ts`, "utf8")).toBe(loopsSource(await buildLoops()))
})
