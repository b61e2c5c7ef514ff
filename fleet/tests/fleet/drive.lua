-- Runs the plugin as slurmctld does, with jobs and a module `slurm` that note what happens.

local plugin, folder = arg[1], arg[2]
local said, errors = {}, {}
slurm = {
    SUCCESS = 0,
    log_user = function(...) said[#said + 1] = string.format(...) end,
    log_error = function(...) errors[#errors + 1] = string.format(...) end,
}

-- The plugin with another table and other settings.
local function load_with(file, settings)
    local text = assert(io.open(plugin)):read("a")
    local count
    text, count = text:gsub('local TABLE = "[^"]*"', function() return string.format("local TABLE = %q", file) end)
    assert(count == 1)
    for name, value in pairs(settings or {}) do
        text, count = text:gsub("local " .. name .. " = [^\n]*", "local " .. name .. " = " .. value)
        assert(count == 1, name)
    end
    assert(assert(load(text))() == slurm.SUCCESS)
end

-- What a job that asks so gets, and how often the user was told.
local function submit(job, user)
    said, errors = {}, {}
    assert(slurm_job_submit(job, {}, user or 1000) == slurm.SUCCESS)
    return job.min_mem_per_node, #said
end

local function is(job, memory, lines, user)
    local got, told = submit(job, user)
    assert(got == memory and told == lines, string.format("%s: %s, %d lines", job.name, tostring(got), told))
    assert(#errors == 0, errors[1])
end

load_with(folder .. "/table.csv")
local big = 'train, "big"'
is({ name = big }, 110, 1)
assert(said[1]:find("--mem=110M is set", 1, true), said[1])
is({ name = big, min_mem_per_node = 110 }, 110, 0)
is({ name = big, min_mem_per_node = 150 }, 150, 0)
is({ name = big, min_mem_per_node = 4000 }, 110, 1)
assert(said[1]:find("lowered", 1, true), said[1])
is({ name = big, min_mem_per_node = 50 }, 50, 1)
assert(said[1]:find("may be too little", 1, true), said[1])
is({ name = big, min_mem_per_node = 0 }, 0, 0)
is({ name = big, min_mem_per_cpu = 10 }, nil, 0)
is({ name = big }, nil, 0, 1001)
is({ name = "other" }, nil, 0)
is({}, nil, 0)
-- A name is no pattern and no format.
is({ name = "100%s" }, 105, 1)

load_with(folder .. "/table.csv", { RAISE = "true", LOWER_ABOVE = "false" })
is({ name = big, min_mem_per_node = 50 }, 110, 1)
assert(said[1]:find("raised", 1, true), said[1])
is({ name = big, min_mem_per_node = 4000 }, 4000, 0)

load_with(folder .. "/missing.csv")
is({ name = big }, nil, 0)
load_with(folder .. "/broken.csv")
submit({ name = "a" })
assert(#errors == 1 and errors[1]:find("line 2", 1, true), errors[1])
-- A mistake lets the job in.
said, errors = {}, {}
assert(slurm_job_submit(nil, {}, 1000) == slurm.SUCCESS and #errors == 1)
print("passed")
