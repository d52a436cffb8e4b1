import torch

torch.set_num_threads(1)  # the networks are small: a second thread costs more than it gives
