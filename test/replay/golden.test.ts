import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { goldenPath, recordGolden } from "./golden.ts"

describe("golden vectors of our own recording", () => {
  const golden = JSON.parse(readFileSync(goldenPath, "utf8")) as Record<string, unknown>
  const now = recordGolden()
  for (const name of Object.keys(now))
    it(`${name}: does what it did when it was recorded`, () => expect(now[name]).toEqual(golden[name]))
  it("are all still made", () => expect(Object.keys(now)).toEqual(Object.keys(golden)))
})
